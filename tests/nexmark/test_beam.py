"""Do Beam's definitions give Beam's numbers of results for the events of this generator?"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from penstock.instant import MAX_TIME
from penstock.testing import Script
from tests.nexmark.beam_plans import PLANS
from tests.nexmark.playing import Row, made, site, stage_of

FILE = tomllib.loads((Path(__file__).parent / "beam.toml").read_text(encoding="utf-8"))
COLUMNS = ("id", "name", "city", "state", "reserve", "expires", "seller", "category", "auction", "bidder", "price")


@cache
def asked(size: str) -> list[Row]:
    """The events, with those columns that the plans read."""
    rows = made(events=FILE["asked"][size], generators=FILE["asked"]["generators"], rate=FILE["asked"]["rate"])
    kept = {"event_type", "date_time", "@partition", *COLUMNS}
    return [{name: value for name, value in row.items() if name in kept} for row in rows]


def results(query: str, size: str, engine: str, batches: int) -> int:
    """How many results there are."""
    script = Script(stage_of(PLANS[query](site(COLUMNS))), engine)
    rows = asked(size)
    each = -(-len(rows) // batches)
    for at in range(0, len(rows), each):
        script.batch(rows[at : at + each], now=0)
    script.advance("1970-01-01T00:00:10Z")
    script.end(now=MAX_TIME // 2)
    assert not script.late
    return len(script.rows) + len(script.panes)


@pytest.mark.parametrize("query", FILE["many"])
def test_a_hundred_thousand_events_give_as_many_results_as_are_published(query: str) -> None:
    assert results(query, "many", "columnar", 3) == FILE["many"][query]


@pytest.mark.parametrize("query", FILE["few"])
def test_ten_thousand_events_give_as_many_results_as_are_published(query: str, engine: str) -> None:
    assert results(query, "few", engine, 5) == FILE["few"][query]
