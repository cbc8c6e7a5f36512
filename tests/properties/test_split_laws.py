"""Laws of batches: how rows are cut into batches changes no last answer, and a bigger batch is never less complete."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from hypothesis import given, strategies as st

import penstock as ps
from penstock.model.panes import Pane
from penstock.model.windows import EventPair, Global, Session, Sliding, Window
from penstock.plan.stages import Plan
from tests.properties.comparing import same_value
from tests.properties.plans import END_OF_TIME, plans, resizes, rules, windows, with_mode
from tests.properties.profile import law
from tests.properties.streams import Row, Step, played, rows_near, scripts

Answers = dict[tuple[object, Window], dict[str, Any]]
steady = windows().filter(lambda window: not resizes(window))
plain = windows().filter(lambda window: isinstance(window, Global | Sliding | Session | EventPair))
by_hand = st.just(ps.by_hand())


def answers(panes: list[Pane]) -> Answers:
    """The last accumulating pane of each window that stands."""
    last: Answers = {}
    for pane in panes:
        if pane.op == 1:
            last[pane.key, pane.window] = dict(pane.values)
        else:
            del last[pane.key, pane.window]
    return last


def same_answers(one: Answers, two: Answers) -> None:
    assert one.keys() == two.keys()
    for place, values in one.items():
        for name, value in values.items():
            assert same_value(name, value, two[place][name]), (place, name, value, two[place][name])


@st.composite
def stretches(draw: st.DrawFn) -> list[tuple[list[Row], int | None]]:
    """Rows between marks, none of them behind the mark before: nothing can be late."""
    found, low = [], 0
    for _ in range(draw(st.integers(1, 4))):
        high = low + draw(st.sampled_from([10, 25, 0, 40]))
        rows = [draw(rows_near(high, odd=False)) for _ in range(draw(st.sampled_from([4, 8, 2, 0])))]
        found.append(([{**row, "at": max(row["at"], low)} for row in rows], draw(st.sampled_from([low, None]))))
        low = draw(st.integers(low, high))
    return found


@st.composite
def split(draw: st.DrawFn, whole: list[tuple[list[Row], int | None]]) -> list[Step]:
    """The same rows in the same order, in other batches; a mark is given with the first batch of its stretch."""
    steps, now = [], 1000
    for rows, mark in whole:
        ends = sorted(draw(st.sets(st.integers(0, len(rows)), max_size=4)) | {0, len(rows)})
        for start, end in zip(ends, [*ends[1:], len(rows)], strict=True):
            now += draw(st.integers(0, 8))
            steps.append(Step(tuple(rows[start:end]), now, mark, draw(st.integers(0, 5)) == 5))
    return [*steps, Step((), now + 1, END_OF_TIME)]


@law(80)
@given(st.data(), plans(window=steady, watermark=by_hand, modes=("accumulating",)), stretches())
def test_the_last_pane_does_not_depend_on_the_batch_split(data: st.DataObject, plan: Plan, whole: Any) -> None:
    one, two = (played(plan, data.draw(split(whole)), "columnar") for _ in range(2))
    assert not one.late
    assert not two.late
    same_answers(answers(one.panes), answers(two.panes))


@law(40)
@given(st.data(), plans(window=steady, watermark=rules(), modes=("accumulating",)), stretches())
def test_the_last_pane_does_not_depend_on_the_split_under_any_rule_that_is_patient(
    data: st.DataObject, plan: Plan, whole: Any
) -> None:
    patient = Plan(plan.inputs, plan.keys, plan.window, 10**6, plan.trigger, plan.mode, plan.aggregates)
    one, two = (played(patient, data.draw(split(whole)), "columnar") for _ in range(2))
    assert not one.late
    assert not two.late
    same_answers(answers(one.panes), answers(two.panes))


WHAT = {"n": ps.rows(), "total": ps.sum("v"), "xs": ps.sum("x"), "low": ps.min("v"), "kinds": ps.distinct("v"),
        "last": ps.last("v")}  # fmt: skip


def in_windows(window: object, rows: list[Row]) -> dict[Window, list[Row]]:
    """One key's rows by window, as one would write it for a table that is all there."""
    times = sorted({row["at"] for row in rows})
    bounds: set[Window] = set()
    match window:
        case Global():
            return {Window(-(2**63), END_OF_TIME): rows}
        case Sliding(size=size, slide=slide, offset=offset):
            first = min(times) - size - offset
            starts = range(first - first % slide + offset, max(times) + 1, slide)
            bounds = {Window(start, start + size - 1) for start in starts}
        case Session(gap=gap):
            first = [t for i, t in enumerate(times) if i == 0 or t - times[i - 1] > gap]
            last = [t for i, t in enumerate(times) if t == times[-1] or times[i + 1] - t > gap]
            bounds = {Window(a, b + gap) for a, b in zip(first, last, strict=True)}
        case EventPair(distance=d):
            bounds = {Window(t - d, t) for t in times} | {Window(t + 1, t + 1 + d) for t in times}
    inside = {one: [row for row in rows if one.start <= row["at"] <= one.end] for one in bounds}
    ends = 1 if isinstance(window, Sliding) else 0
    return {Window(one.start, one.end + ends): mine for one, mine in inside.items() if mine}


def computed(rows: list[Row]) -> dict[str, Any]:
    """The answers over a window's rows, by hand."""
    values = [row["v"] for row in rows if row["v"] is not None]
    halves = [row["x"] for row in rows if row["x"] is not None]
    places = {(r["at"], r["@partition"]): r for r in reversed(rows) if r["v"] is not None}
    newest = max(places, key=lambda place: (place[0], -int(place[1])), default=None)
    return {
        "n": len(rows), "total": sum(values) if values else None, "xs": math.fsum(halves) if halves else None,
        "low": min(values, default=None), "kinds": len(set(values)),
        "last": None if newest is None else places[newest]["v"],
    }  # fmt: skip


@law(120)
@given(st.data(), plans(window=plain, watermark=by_hand, modes=("accumulating",), filters=False), stretches())
def test_the_last_pane_is_what_a_batch_computation_gives(data: st.DataObject, plan: Plan, whole: Any) -> None:
    plan = with_mode(plan, "accumulating", **WHAT)
    found = answers(played(plan, data.draw(split(whole)), "columnar").panes)
    expected: Answers = {}
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for rows, _ in whole:
        for row in rows:
            groups[tuple(row[name] for name in plan.keys)].append(row)
    for key, rows in groups.items():
        expected |= {(key, window): computed(mine) for window, mine in in_windows(plan.window, rows).items()}
    same_answers(found, expected)


@law(80)
@given(st.data(), plans(modes=("accumulating",)), scripts(odd=False, ended=True))
def test_a_bigger_batch_is_never_less_complete(data: st.DataObject, plan: Plan, steps: list[Step]) -> None:
    at = data.draw(st.integers(0, len(steps) - 3))
    first, second, third = steps[at : at + 3]
    # One batch has one W: that of the first; the mark that came with the second is given with the next.
    both = Step((*first.rows, *second.rows), second.now, first.watermark)
    given_next = max((mark for mark in (second.watermark, third.watermark) if mark is not None), default=None)
    merged = [*steps[:at], both, Step(third.rows, third.now, given_next), *steps[at + 3 :]]
    small, big = played(plan, steps, "columnar"), played(plan, merged, "columnar")
    assert big.counts.late <= small.counts.late
    assert big.counts.kept >= small.counts.kept
    few, many = answers(small.panes), answers(big.panes)
    if not plan.window.merging:
        assert all(place in many and values["n"] <= many[place]["n"] for place, values in few.items())
    elif not resizes(plan.window):
        for key in {key for key, _ in few}:
            assert _rows_of(few, key) <= _rows_of(many, key)


def _rows_of(found: Answers, key: object) -> int:
    return sum(values["n"] for (whose, _), values in found.items() if whose == key)
