"""Laws of joins: the columns agree with the reference whatever comes, and how it is cut changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, strategies as st

import penstock as ps
from penstock.engine.operators.join import JoinOperator
from penstock.engine.state import row_runs
from penstock.plan.operators.join import Join, join_rule
from penstock.reference.operators.join import JoinMachine
from penstock.types.timestamps import MAX_TIME
from tests.properties.joining import LEFT, RIGHT, Both, Step, counted, split, steps
from tests.properties.profile import law
from tests.properties.test_same_bytes import WEAK, colliding

SIDES = (LEFT, RIGHT)
HOWS = ["inner", "left", "right", "full", "semi", "anti"]


def us(length: int) -> str:
    return f"{length} microseconds"


@st.composite
def rules(draw: st.DrawFn, *, bounded: bool = False) -> Join:
    """Joins of every kind and reach, in microseconds."""
    said: dict[str, Any] = {
        "how": draw(st.sampled_from(HOWS)), "lateness": us(draw(st.sampled_from([0, 0, 3, 12]))), "prefix": "r_",
    }  # fmt: skip
    kind = draw(st.sampled_from(["near", "column", "window", *([] if bounded else ["ever"])]))
    if kind == "window" and draw(st.integers(0, 7)) == 7:
        return join_rule(window=ps.calendar("day", zone="Asia/Tokyo"), **said)
    if kind == "window":
        return join_rule(window=ps.tumbling(us(draw(st.sampled_from([5, 8]))), offset=us(3)), **said)
    if kind == "ever":
        return join_rule(
            between=draw(st.sampled_from([None, ("0", None), (None, us(4)), ("at", us(9))])), keep="forever", **said
        )
    low = draw(st.integers(-12, 8))
    high: Any = us(low + draw(st.integers(2, 14))) if kind == "near" else ps.col("ends")
    inclusive = (draw(st.booleans()), draw(st.booleans()))
    return join_rule(between=(us(low), high), inclusive=inclusive, **said)


def both(rule: Join) -> Both:
    return Both(rule, SIDES, JoinMachine, JoinOperator)


@contextmanager
def small_runs(alike: int, largest: int) -> Iterator[None]:
    """Runs so small that a few rows matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_runs, "SMALL", 1)
        patch.setattr(row_runs, "ALIKE", alike)
        patch.setattr(row_runs, "LARGEST", largest)
        yield


@law(300)
@given(rules(), steps(max_batches=9), st.integers(2, 4), st.sampled_from([4, 10**6]))
def test_columns_agree_with_the_reference(rule: Join, script: list[Step], alike: int, largest: int) -> None:
    with small_runs(alike, largest):
        pair = both(rule)
        for step in script:
            pair.play(step)


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(40)
@given(rules(), steps())
def test_keys_that_share_a_hash_are_told_apart(weaken: Any, rule: Join, script: list[Step]) -> None:
    with colliding(weaken):
        pair = both(rule)
        for step in script:
            pair.play(step)


@law(100)
@given(rules(), steps())
def test_nothing_is_held_after_the_end(rule: Join, script: list[Step]) -> None:
    pair = both(rule)
    for step in [*script, Step(([], []), MAX_TIME)]:
        pair.play(step)
    assert pair.machine.held() == 0


@law(150)
@given(st.data(), rules(), steps(patient=True, ended=True))
def test_how_rows_are_cut_into_batches_changes_nothing(data: st.DataObject, rule: Join, script: list[Step]) -> None:
    one, two = both(rule), both(rule)
    whole = [out for step in script for out in one.play(step)]
    parts = [out for step in data.draw(split(script)) for out in two.play(step)]
    assert not one.late
    assert not two.late
    # Which partner of a semi join comes first is a matter of batches; that there is one is not.
    assert counted(whole, times=rule.how != "semi") == counted(parts, times=rule.how != "semi")
