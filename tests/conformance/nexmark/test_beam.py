"""Do Beam's definitions give Beam's numbers of results for the events of this generator?"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from examples.nexmark.generator import nexmark
from penstock.testing import Script
from tests.conformance.nexmark.beam_plans import PLANS
from tests.conformance.nexmark.playing import Row, site, stage_of

FILE = tomllib.loads((Path(__file__).parent / "beam.toml").read_text(encoding="utf-8"))
COLUMNS = ("id", "name", "city", "state", "reserve", "expires", "seller", "category", "auction", "bidder", "price")


NOW = "2026-01-01T00:00:00Z"


@cache
def asked(size: str, batches: int) -> list[list[Row]]:
    """The events, with those columns that the plans read, in so many batches."""
    said = FILE["asked"]
    events = nexmark(events=said[size], generators=said["generators"], rate=said["rate"], columns=COLUMNS)
    log = events.inputs[0].source.reader
    found, at = [], log.start()
    while not log.finished(at, 0):
        upto = log.latest(at, 0, -(-said[size] // batches))
        chunks = [chunk for split in log.splits(at, upto) for chunk in log.read(split)]
        found.append([{**row, "@partition": chunk.partition} for chunk in chunks for row in chunk.rows.to_pylist()])
        at = upto
    return found


def results(query: str, size: str, engine: str, batches: int) -> int:
    """How many results there are."""
    script = Script(stage_of(PLANS[query](site(COLUMNS))), engine)
    for rows in asked(size, batches):
        script.batch(rows, now=NOW)
    script.advance("2026-01-01T00:00:10Z")
    script.end()
    assert not script.late
    assert not script.quarantined
    return len(script.rows) + len(script.panes)


@pytest.mark.parametrize("query", FILE["many"])
def test_a_hundred_thousand_events_give_as_many_results_as_are_published(query: str) -> None:
    assert results(query, "many", "columnar", 3) == FILE["many"][query]


@pytest.mark.parametrize("query", FILE["few"])
def test_ten_thousand_events_give_as_many_results_as_are_published(query: str, engine: str) -> None:
    assert results(query, "few", engine, 5) == FILE["few"][query]
