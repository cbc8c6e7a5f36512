"""Laws of dedup: both implementations agree, nothing is lost, and a row is kept once however batches are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from penstock.engine.operators import deduplicate
from penstock.engine.operators.deduplicate import Deduplicated
from penstock.engine.state import runs
from penstock.plan.operators.deduplicate import Dedup
from penstock.plan.stages import Side
from penstock.reference.operators.deduplicate import DedupMachine
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.properties.one_side import SECOND, Batch, Both, batches
from tests.properties.profile import law
from tests.properties.test_same_bytes import WEAK, colliding

COLUMNS = schema("id string, x double, n long")
rules = st.builds(
    Dedup, st.sampled_from([0, 1, 3, 10]).map(SECOND.__mul__), st.sampled_from(["first", "last"]),
    st.sampled_from([0, 0, 5]).map(SECOND.__mul__),
)  # fmt: skip
rows = st.fixed_dictionaries({
    "id": st.sampled_from(["a", "b", None]), "n": st.integers(0, 5),
    "x": st.sampled_from([0.0, -0.0, float("nan"), None, 1.5]),
})  # fmt: skip
keys = st.sampled_from([("id",), ("id", "x"), ("x",)])


def both(rule: Dedup, key: tuple[str, ...]) -> Both:
    side = Side("rows", COLUMNS, key)
    return Both(DedupMachine(rule, (side,)), Deduplicated(rule, (side,)), side, lambda _, row: identity(row, key))


def identity(row: dict[str, Any], key: tuple[str, ...]) -> list[Any]:
    return [row[name] + 0.0 if isinstance(row[name], float) else row[name] for name in key]


@law(300)
@given(rules, keys, batches(rows), st.sampled_from([0, 1, 32]), st.sampled_from([0, 2048]))
def test_both_agree(rule: Dedup, key: tuple[str, ...], steps: list[Batch], rounds: int, small: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deduplicate, "ROUNDS", rounds)
        patch.setattr(runs, "SMALL", small)
        play = both(rule, key)
        for step in steps:
            play.play(step)
        count = len(play.outputs) + play.late + (play.machine.held() if rule.keep == "last" else 0)
        assert count == play.read
        if steps[-1].watermark == MAX_TIME:
            assert play.machine.held() == 0


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(30)
@given(rules, keys, batches(rows))
def test_ids_that_share_a_hash_are_told_apart(
    weaken: Any, rule: Dedup, key: tuple[str, ...], steps: list[Batch]
) -> None:
    with colliding(weaken):
        play = both(rule, key)
        for step in steps:
            play.play(step)


@law(100)
@given(rules, st.lists(st.tuples(st.integers(0, 60), rows), max_size=20), st.data())
def test_any_split_keeps_as_many_rows(
    rule: Dedup, given_rows: list[tuple[int, dict[str, Any]]], data: st.DataObject
) -> None:
    """One partition and W behind every row to come: how the rows are cut into batches changes nothing."""
    found = []
    for _ in range(2):
        play, at = both(rule, ("id",)), 0
        while at < len(given_rows):
            size = data.draw(st.integers(1, 8))
            part, ahead = given_rows[at : at + size], given_rows[at:]
            watermark = min((time for time, _ in ahead), default=0) * SECOND
            play.play(Batch(tuple((time * SECOND, "a", row) for time, row in part), watermark, 0))
            at += size
        play.play(Batch((), MAX_TIME, 0))
        found.append(sorted(map(repr, play.outputs)))
    assert found[0] == found[1]


@law(20)
@given(rules)
def test_what_is_held_does_not_grow(rule: Dedup) -> None:
    side = Side("rows", COLUMNS, ("id",))
    play = Both(DedupMachine(rule, (side,)), Deduplicated(rule, (side,)), side, lambda _, row: row["id"])
    most = []
    for n in range(60):
        time = n * 2 * SECOND
        play.play(Batch(((time, "a", {"id": f"{n}", "x": 0.0, "n": n}),), max(time - SECOND, MIN_TIME), 0))
        most.append(play.machine.held())
    assert max(most[30:]) <= max(most[:30])
