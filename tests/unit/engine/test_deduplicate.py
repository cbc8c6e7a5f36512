"""Dedup: which rows are kept, which are dropped, and when an id is forgotten; on both implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import PlanError
from penstock.plan.operators.deduplicate import Dedup, dedup_rule
from penstock.plan.stages import Side
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.unit.engine.playing_stages import SECOND, Played, player

CLICKS = Side("clicks", schema("id string, n long"), ("id",))
Play = Callable[..., Played]


@pytest.fixture(params=["reference", "columnar"])
def play(request: pytest.FixtureRequest) -> Play:
    def start(keep: str = "first", lateness: str = "0", side: Side = CLICKS) -> Played:
        return player(request.param, dedup_rule(within="10 seconds", keep=keep, lateness=lateness), side)

    return start


def numbers(run: Played, output: str = "rows") -> list[int]:
    return [row["n"] for _, row in run.rows(output)]


def test_the_first_that_comes_is_given_out_at_once_and_others_within_are_duplicates(play: Play) -> None:
    run = play()
    run.batch([(20, "a", 1), (10, "a", 2), (30, "a", 3), (9, "a", 4), (31, "a", 5), (20, "b", 6)])
    assert numbers(run) == [1, 4, 5, 6]
    assert numbers(run, "duplicates") == [2, 3]
    run.batch([(25, "a", 7), (41, "a", 8), (42, "a", 9)])
    assert numbers(run)[4:] == [9]
    assert numbers(run, "duplicates")[2:] == [7, 8]


def test_a_duplicate_of_a_duplicate_is_measured_from_the_row_that_was_given(play: Play) -> None:
    run = play()
    run.batch([(1, "a", 1)])
    run.batch([(9, "a", 2)])
    run.batch([(15, "a", 3)])
    assert numbers(run) == [1, 3]


def test_an_id_is_held_until_w_is_past_its_row_by_more_than_within_and_lateness(play: Play) -> None:
    run = play(lateness="5 seconds")
    run.batch([(20, "a", 1)])
    run.batch([(30, "a", 2)], watermark=35)
    assert (numbers(run, "duplicates"), run.held()) == ([2], 1)
    run.batch([(29, "a", 3)], watermark=35)
    assert [row["n"] for row in run.late] == [3]
    run.batch([(31, "a", 4)], watermark=36)
    assert (numbers(run), run.held()) == ([1, 4], 1)
    run.batch([], watermark=MAX_TIME // SECOND + 1)
    assert run.held() == 0


def test_a_row_behind_w_by_more_than_lateness_is_late_and_neither_given_nor_a_duplicate(play: Play) -> None:
    run = play()
    run.batch([(19, "a", 1), (20, "a", 2)], watermark=20)
    assert [row["n"] for row in run.late] == [1]
    assert (numbers(run), numbers(run, "duplicates")) == ([2], [])


def test_the_last_of_a_chain_is_given_out_when_w_rules_another_out(play: Play) -> None:
    run = play(keep="last")
    run.batch([(20, "a", 1), (28, "a", 2)], watermark=0)
    run.batch([(25, "a", 3), (36, "a", 4), (60, "a", 5)], watermark=10)
    assert (numbers(run), numbers(run, "duplicates"), run.hold) == ([], [1, 3, 2], 36 * SECOND)
    run.batch([], watermark=46)
    assert (numbers(run), run.held()) == ([], 2)
    run.batch([], watermark=47)
    assert run.rows() == [(36, {"id": "a", "n": 4})]
    assert (run.hold, run.held()) == (60 * SECOND, 1)


def test_of_rows_with_one_time_the_last_that_came_is_the_last(play: Play) -> None:
    run = play(keep="last")
    run.batch([(20, "a", 1), (20, "a", 2)])
    run.batch([(20, "a", 3)])
    run.restart()
    run.batch([], watermark=100)
    assert (numbers(run), numbers(run, "duplicates")) == ([3], [1, 2])


def test_a_row_between_two_chains_makes_them_one(play: Play) -> None:
    run = play(keep="last")
    run.batch([(20, "a", 1)])
    run.batch([(40, "a", 2)])
    run.batch([(30, "a", 3)])
    run.batch([(11, "a", 4)])
    run.batch([], watermark=100)
    assert (numbers(run), numbers(run, "duplicates")) == ([2], [1, 3, 4])


def test_null_is_an_id_and_so_are_one_zero_and_one_nan(play: Play) -> None:
    side = Side("rows", schema("id double, n long"), ("id",))
    run = play(side=side)
    run.batch([(1, None, 1), (1, None, 2), (1, 0.0, 3), (1, -0.0, 4), (1, float("nan"), 5), (1, float("nan"), 6)])
    assert (numbers(run), numbers(run, "duplicates")) == ([1, 3, 5], [2, 4, 6])


def test_an_id_may_be_of_several_columns(play: Play) -> None:
    side = Side("rows", schema("id string, place string, n long"), ("id", "place"))
    run = play(side=side)
    run.batch([(1, "a", "x", 1), (1, "a", "y", 2), (1, "a", "x", 3)])
    assert numbers(run) == [1, 2]


def test_a_long_chain_of_one_id_is_walked(play: Play) -> None:
    run = play()
    run.batch([(9 * i, "a", i) for i in range(200)])
    assert numbers(run) == list(range(0, 200, 2))


@pytest.mark.parametrize(
    ("build", "what", "instead"),
    [
        (lambda: dedup_rule(), "dedup does not say within which time", 'within="1 hour"'),
        (lambda: dedup_rule(within="-1 hour"), "within is '-1 hour', which is negative", 'within="0"'),
        (lambda: dedup_rule(within=5), "which is not a duration", '"5 seconds"'),
        (lambda: dedup_rule(within="1 hour", keep="newest"), "keep is 'newest'", 'keep="first" or keep="last"'),
        (lambda: dedup_rule(within="1 hour", keep="lasst"), "keep is 'lasst'", "did you mean 'last'?"),
        (lambda: dedup_rule(within="1 hour").check((Side("e", CLICKS.schema, ()),)), "by which columns", '.dedup("id"'),
    ],
)
def test_what_cannot_be_right_is_refused(build: Callable[[], Any], what: str, instead: str) -> None:
    with pytest.raises(PlanError) as caught:
        build()
    assert what in caught.value.what
    assert caught.value.why
    assert instead in caught.value.instead


def test_what_is_held_is_said_and_what_binds() -> None:
    rule = Dedup(3600 * SECOND, "first", 60 * SECOND)
    assert rule.holds((CLICKS,)) == (
        "the id and the time of each row given, until W is more than 1 hour 1 minute past it",
    )  # fmt: skip
    assert rule.check((CLICKS,)) == ()
    assert "no row of it came" in Dedup(SECOND, "last").check((CLICKS,))[0]
    assert rule.binding((CLICKS,)) == Dedup(5).binding((CLICKS,))
    assert Dedup(5, "last").binding((CLICKS,))["rows"] == "id string, n long"
