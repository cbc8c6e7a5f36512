"""What older versions wrote to PostgreSQL is gone on with: the ledger is read, and the next batch is the next."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.testing.servers.postgres import Database
from tests.golden.servers import BATCHES, OLDER, give, postgres, restored, rows_of
from tests.golden.sets import HERE, versions


@pytest.mark.parametrize("version", versions())
def test_a_table_is_gone_on_with(version: str, server: Database) -> None:
    names = [f"{name}_{version.replace('.', '_')}" for name in ("golden", "whole")]
    for name in names:
        server.ask(f"CREATE DATABASE {name}")
    there, whole = (server.url_of(name=name) for name in names)
    restored(there, (HERE / version / "postgres.sql").read_text())
    sink = postgres(there)
    assert not give(sink, BATCHES - 1, epoch=2), "the ledger has it, with this fingerprint"
    with pytest.raises(PenstockError, match="taken over"):
        give(sink, BATCHES, epoch=3, lineage=OLDER)
    with pytest.raises(PenstockError, match="epoch"):
        give(sink, BATCHES, epoch=1)
    assert give(sink, BATCHES, epoch=2)
    for number in range(BATCHES + 1):
        give(postgres(whole), number)
    found, expected = rows_of(there), rows_of(whole)
    assert found.pop("penstock_retired") == [("totals", OLDER)]
    expected.pop("penstock_retired")
    assert found == expected
