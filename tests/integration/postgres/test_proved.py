"""Can `penstock prove` give a life a table of its own, look into it, and remove it?"""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from penstock.api.pipeline import Output
from penstock.connectors.sink import Batch
from penstock.testing.crash.redirect import redirected
from penstock.testing.crash.sink_rows import forget, held_by
from tests.unit.connectors.sinks.outputs import PANES, pane, panes


def test_a_life_has_a_table_of_its_own(server, schema):
    given = ps.postgres(server.url, table=f"{schema}.answers", create=False)
    (sink,) = redirected([Output(None, "panes", given)], Path("runs/life-003"), "a1b2")
    assert (sink.table, sink.history, sink.create) == (f"{schema}.answers_prove_a1b2_life003", True, True)
    writer, batch = sink.open(PANES), Batch("lineage", 0, 1, 2, "")
    writer.begin("lineage", 1)
    writer.write(batch, [panes(pane("red", 1), pane("red", 2, index=1))])
    writer.commit(batch)
    writer.close()
    held = held_by(sink, PANES)
    assert held.every is not None
    assert [(row[0], row[3]) for row in held.every] == [("red", "1"), ("red", "2")]
    assert held.current == [held.every[1][:-1]]
    forget(sink, PANES)
    held = held_by(sink, PANES)
    assert (held.every, held.current) == ([], [])
    assert server.ask(f"SELECT count(*) FROM {schema}.penstock_ledger") == [(0,)]
