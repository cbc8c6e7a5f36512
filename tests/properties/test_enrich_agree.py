"""Laws of enrichment: both implementations agree on what is asked, remembered and given, and every row is somewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, note, strategies as st

from penstock.engine.operators import enrich_cache
from penstock.engine.operators.enrich import Enriching
from penstock.plan.operators.enrich import Asking, Enrich, OnError
from penstock.plan.stages import Side
from penstock.reference.operators.enrich import EnrichMachine
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.properties.one_side import SECOND, Batch, Both, batches
from tests.properties.profile import law
from tests.properties.test_same_bytes import WEAK, colliding

COLUMNS = schema("id string, x double, n long")
ASKING = Asking(concurrency=8, timeout=60 * SECOND, retries=0, backoff=0, give_up=60 * SECOND)
rows = st.fixed_dictionaries({
    "id": st.sampled_from(["a", "b", "c", None]), "n": st.integers(0, 5),
    "x": st.sampled_from([0.0, -0.0, float("nan"), None, 1.5]),
})  # fmt: skip
asked_by = st.sampled_from([("id",), ("id", "x"), ("x",), ("n", "id"), ()])


class World:
    """The outside: what it answers depends on when it is asked, so that what is remembered shows."""

    def __init__(self) -> None:
        self.batch = 0

    async def __call__(self, row: dict[str, Any]) -> Any:
        about = repr(sorted(row.items()))
        match crc32(about.encode()) % 7:
            case 0:
                raise ConnectionError(about)
            case 1:
                return None
            case 2:
                return {"said": 3}
        return {"said": about, "batch": self.batch}


@st.composite
def rules(draw: st.DrawFn) -> Enrich:
    on_error: OnError = draw(st.sampled_from(["quarantine", "null"]))
    cache = draw(st.sampled_from([None, 1, 5, 12, 1000]))
    return Enrich(
        World(), schema("said string, batch long"), draw(asked_by), ASKING,
        None if cache is None else cache * SECOND, draw(st.sampled_from([1, 2, 3, 5, 1000])), on_error,
    )  # fmt: skip


def both(rule: Enrich) -> Both:
    side = Side("rows", COLUMNS, ())
    return Both(EnrichMachine(rule, (side,)), Enriching(rule, side), side, lambda _, row: "all")


def played(rule: Enrich, steps: list[Batch]) -> Both:
    play, world = both(rule), rule.function
    assert isinstance(world, World)
    for number, step in enumerate(steps):
        note(f"{number}: {step}")
        world.batch = number
        play.play(step)
    return play


@law(150)
@given(rules(), batches(rows), st.sampled_from([1, 4, 1024]))
def test_both_agree_and_no_row_is_lost(rule: Enrich, steps: list[Batch], small: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enrich_cache, "SMALL", small)
        play = played(rule, steps)
    assert play.read == len(play.outputs) + play.bad
    assert play.late == 0
    assert play.machine.held() <= (0 if steps[-1].watermark == MAX_TIME else rule.cache_rows)


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(25)
@given(rules(), batches(rows))
def test_questions_that_share_a_hash_are_told_apart(weaken: Any, rule: Enrich, steps: list[Batch]) -> None:
    with colliding(weaken):
        played(rule, steps)


@law(40)
@given(rules(), st.lists(st.tuples(st.integers(0, 60), rows), max_size=20), st.data())
def test_how_rows_are_cut_into_batches_changes_no_answer_of_a_world_that_stays(
    rule: Enrich, given_rows: list[tuple[int, dict[str, Any]]], data: st.DataObject
) -> None:
    found = []
    for _ in range(2):
        play, at = both(replace(rule, cache=data.draw(st.sampled_from([None, SECOND])))), 0
        while at < len(given_rows):
            size = data.draw(st.integers(1, 8))
            part = given_rows[at : at + size]
            play.play(Batch(tuple((time * SECOND, "a", row) for time, row in part), MIN_TIME, at * SECOND))
            at += size
        found.append([repr(row) for row in play.outputs])
    assert found[0] == found[1]
