"""Laws of keyed functions: both implementations agree, state is bounded, and in order any split says the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from penstock.engine.operators.process.step import Keyed
from penstock.engine.state import runs
from penstock.plan.operators.process import KeyedFunction, Process
from penstock.plan.stages import Side
from penstock.reference.operators.process import KeyedMachine
from penstock.types.timestamps import LATEST, MAX_TIME
from tests.properties.keyed_functions import COLUMNS, DEEDS, Finite, Mixed, told_rows
from tests.properties.one_side import SECOND, Batch, Both, batches
from tests.properties.profile import law
from tests.properties.test_same_bytes import WEAK, colliding

keys = st.sampled_from([("k",), ("k", "x")])
IN_EVENT_TIME = tuple(do for do in DEEDS if not do.startswith(("clock", "unclock")))


def both(function: KeyedFunction, ordered: bool, key: tuple[str, ...]) -> Both:
    side, rule = Side("events", COLUMNS, key), Process(function, ordered)
    return Both(KeyedMachine(rule, (side,)), Keyed(rule, (side,)), side, lambda _, row: row["key"])


@law(150)
@given(keys, st.booleans(), batches(told_rows()), st.sampled_from([0, 2048]))
def test_both_agree(key: tuple[str, ...], ordered: bool, steps: list[Batch], small: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", small)
        play = both(Mixed(), ordered, key)
        for step in steps:
            play.play(step)
        assert ordered or not play.late


@law(150)
@given(keys, st.booleans(), batches(told_rows(IN_EVENT_TIME)))
def test_nothing_is_held_once_time_has_ended(key: tuple[str, ...], ordered: bool, steps: list[Batch]) -> None:
    play = both(Finite(), ordered, key)
    for step in (*steps, Batch((), MAX_TIME, 10_000 * SECOND)):
        play.play(step)
    assert play.machine.held() == 0


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(30)
@given(keys, st.booleans(), batches(told_rows()))
def test_keys_that_share_a_hash_are_told_apart(
    weaken: Any, key: tuple[str, ...], ordered: bool, steps: list[Batch]
) -> None:
    with colliding(weaken):
        play = both(Mixed(), ordered, key)
        for step in steps:
            play.play(step)


@law(150)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab"), told_rows(IN_EVENT_TIME)), max_size=20), st.data())
def test_in_order_any_split_says_the_same(rows: list[tuple[int, str, dict[str, Any]]], data: st.DataObject) -> None:
    """As long as W is behind every row to come, batches may be cut anywhere, and the partitions read in any turns."""
    of = {part: [(time * SECOND, part, row) for time, where, row in rows if where == part] for part in "ab"}
    found = []
    for _ in range(2):
        play, at, watermark = both(Finite(), True, ("k",)), {"a": 0, "b": 0}, 0
        while any(at[part] < len(of[part]) for part in of):
            ahead = [time for part in of for time, *_ in of[part][at[part] :]]
            watermark = max(watermark, data.draw(st.integers(0, min(ahead))))
            arrived = []
            for part in of:
                size = data.draw(st.integers(0, 4)) if part == "a" else data.draw(st.integers(1, 4))
                arrived += of[part][at[part] : at[part] + size]
                at[part] += size
            play.play(Batch(tuple(arrived), watermark, 0))
            if all(at[part] >= len(of[part]) for part in "b"):
                play.play(Batch(tuple(of["a"][at["a"] :]), watermark, 0))
                at["a"] = len(of["a"])
        play.play(Batch((), LATEST, 0))
        found.append(sorted(map(repr, play.outputs)))
        assert play.late == 0
    assert found[0] == found[1]


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_held_does_not_grow(ordered: bool) -> None:
    play, held = both(Finite(), ordered, ("k",)), []
    for n in range(80):
        time = n * SECOND
        told = [{"k": f"key {n}", "x": 0.0, "do": do, "v": n % 9} for do in ("add", "push", "put", "timer x", "stamp")]
        play.play(Batch(tuple((time, "a", row) for row in told), time - 2 * SECOND, 0))
        held.append(play.machine.held())
    assert max(held[70:]) <= max(held[60:70])
    assert sum(run.rows for run in play.memory.state) <= 2 * sum(run.live for run in play.memory.state) + 10
