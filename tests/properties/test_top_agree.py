"""Laws of the best rows: both implementations agree, and what stands in the end are the best of all that came."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

import penstock as ps
from penstock.engine.operators.top_n import TopOperator
from penstock.engine.state import runs
from penstock.plan.operators.top_n import Top, top_rule
from penstock.plan.stages import Side
from penstock.reference.operators.top_n import TopMachine
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.one_side import SECOND, Batch, Both, batches
from tests.properties.profile import law

COLUMNS = schema("k string, x double, v long")
rows = st.fixed_dictionaries({
    "k": st.sampled_from(["a", "b", None]), "x": st.sampled_from([0.0, -0.0, float("nan"), None, 1.5, -3.0]),
    "v": st.one_of(st.integers(-2, 3), st.none()),
})  # fmt: skip
windows = st.sampled_from([
    None, ps.tumbling("4 seconds"), ps.tumbling("10 seconds", offset="3 seconds"), ps.calendar("day"),
])  # fmt: skip
best = st.sampled_from(["greatest", "least"])


@st.composite
def rules(draw: st.DrawFn) -> Top:
    """The best rows of all time or of windows."""
    n, by, late = draw(st.integers(1, 4)), draw(st.sampled_from(["v", "x", "k"])), draw(st.sampled_from([0, 0, 5]))
    return top_rule(n, by=by, best=draw(best), window=draw(windows), lateness=late * SECOND)


def both(rule: Top, key: tuple[str, ...]) -> Both:
    def place(_: str, row: dict[str, Any]) -> Any:
        return [row[name] + 0.0 if isinstance(row[name], float) else row[name] for name in key], row.get("window_start")

    side = Side("rows", COLUMNS, key)
    return Both(TopMachine(rule, (side,)), TopOperator(rule, (side,)), side, place)


@law(100)
@given(rules(), st.sampled_from([("k",), ("k", "x")]), batches(rows), st.sampled_from([0, 2048]))
def test_both_agree(rule: Top, key: tuple[str, ...], steps: list[Batch], small: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", small)
        play = both(rule, key)
        for step in steps:
            play.play(step)
        if steps[-1].watermark == MAX_TIME:
            assert play.machine.held() == 0


@law(60)
@given(st.integers(1, 3), best, windows, st.lists(st.tuples(st.integers(0, 30), rows), max_size=20), st.data())
def test_what_stands_are_the_best_of_all_that_came(
    n: int, best: Any, window: Any, told: list[Any], data: st.DataObject
) -> None:
    """However the rows are cut into batches: one sort over all of them says the same."""
    play, at, place = both(top_rule(n, by="v", best=best, window=window), ("k",)), 0, {}
    while at < len(told):
        size = data.draw(st.integers(1, 6))
        ahead = min(time for time, _ in told[at:]) * SECOND
        play.play(Batch(tuple((time * SECOND, "a", row) for time, row in told[at : at + size]), ahead, 0))
        at += size
    play.play(Batch((), MAX_TIME, 0))
    standing: Counter[Any] = Counter()
    for (_, row, _), op in zip(play.outputs, play.ops, strict=True):
        standing[repr((row["k"], row.get("window_start"), row["rank"], row["v"]))] += op
    groups: dict[Any, list[int]] = {}
    for time, row in told:
        start = None if window is None else window.assign(time * SECOND)[0].start
        if row["v"] is not None:
            groups.setdefault((row["k"], start), []).append(row["v"])
    for (key, start), values in groups.items():
        for rank, value in enumerate(sorted(values, reverse=best == "greatest")[:n], 1):
            place[repr((key, start, rank, value))] = 1
    assert +standing == Counter(place)
