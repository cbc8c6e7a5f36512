"""Is each answer that of one query over all events, however they are cut, in what order, and through restarts?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples.nexmark.queries import QUERIES
from penstock.testing import Script
from penstock.types.durations import SECOND
from tests.conformance.nexmark.asking import wanted
from tests.conformance.nexmark.playing import cut, made, only, out_of_order, played, site, stage_of, standing

PAGE = Path(__file__).parents[3] / "docs/nexmark.md"
# Two of a hundred generators, whose events have something for each query; forty seconds, in which windows end, sessions
# break and auctions close.
EVENTS = made((5, 40), events=100_000, generators=100, rate=2_500)


@pytest.mark.parametrize("query", [query for query in QUERIES if query != "q12"])
def test_the_answer_is_that_of_one_query_over_all_events(query: str, engine: str) -> None:
    columns, rows = wanted(query, EVENTS)
    assert rows
    for seed in range(2):
        batches = cut(out_of_order(EVENTS, seed), seed)
        script = played(QUERIES[query](site()), batches, engine, restart=True)
        assert only(standing(script), columns) == rows


@pytest.mark.parametrize("bound", [0.0, 3.9, 60.0])
def test_bids_are_counted_by_the_processing_clock(bound: float, engine: str) -> None:
    """In whatever order they come: a minute late by their own time, they are in time by the clock that counts them."""
    script = Script(stage_of(QUERIES["q12"](site())), engine)
    counts: Counter[tuple[int, int]] = Counter()
    for number, batch in enumerate(cut(out_of_order(EVENTS, 1, bound), 1)):
        now = number * 4 * SECOND
        script.batch(batch, now=now)
        script.restart()
        counts.update((row["bidder"], now // (10 * SECOND)) for row in batch if row["event_type"] == 2)
    script.end()
    assert not script.late
    assert len(script.panes) == len(counts)
    for pane in script.panes:
        assert pane.values["bid_count"] == counts[pane.key[0], pane.window.start // (10 * SECOND)]


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_says_its_question_and_is_on_the_page(query: str) -> None:
    asked = QUERIES[query].__doc__ or ""
    assert asked
    assert "\n" not in asked
    rows = [line.split("|")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert any(query in row.replace(",", " ").split() for row in rows)
