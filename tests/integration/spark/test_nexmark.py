"""Nexmark on Spark: the same answers through restarts, from the generator as a source, and through kills."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from examples.nexmark.generator import nexmark
from examples.nexmark.queries import QUERIES
from examples.nexmark.site import Site
from penstock.testing.pytest_plugin import prove as prove  # the fixture
from penstock.types.timestamps import from_datetime
from tests.conformance.nexmark.asking import wanted
from tests.conformance.nexmark.playing import made, only, out_of_order, played, site, standing

ASKED = {"events": 1_500, "rate": 50, "generators": 2, "group": 10}
READ = ("q7", "q9", "q11", "q17", "cep3")


@pytest.mark.spark
@pytest.mark.parametrize("query", ["q5", "q9", "cep0"])
def test_spark_gives_the_same_answers(query: str) -> None:
    events = made((5, 40), events=100_000, generators=100, rate=2_500)
    rows = out_of_order(events, 3)
    script = played(QUERIES[query](site()), [rows[:900], rows[900:1_000], rows[1_000:]], "spark", restart=True)
    columns, answer = wanted(query, events)
    assert only(standing(script), columns) == answer


@pytest.mark.spark
def test_the_generator_is_read_on_spark(spark: Any, tmp_path: Path) -> None:
    events = Site(nexmark(**ASKED))
    outputs = [QUERIES[query](events).write(ps.memory(query)) for query in READ]
    pipeline = ps.pipeline("read", *outputs, batch_rows=500, shards=2)
    pipeline.run(checkpoint=str(tmp_path / "checkpoint"), batch_every="0", until="end", spark=spark)
    for query in READ:
        columns, answer = wanted(query, made(**ASKED))
        held = ps.memory(query)
        rows = held.current() if "op" in held.table.column_names else held.rows
        assert only(Counter(map(_frozen, rows)), columns) == answer


@pytest.mark.spark
def test_answers_survive_kills(prove: Any) -> None:
    found = prove("examples.nexmark.pipeline", kills=1, seed=3, batches=3, batch_rows=3_000)
    assert (found.kills, found.read, found.counted("lost")) == (1, 9_000, 0)


def _frozen(row: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """A row of a sink, its times in microseconds."""
    return tuple((name, from_datetime(value) if hasattr(value, "tzinfo") else value) for name, value in row.items())
