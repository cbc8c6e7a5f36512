"""Law: a sum of integers stops the run when a pane would show more than 64 bits hold, on both engines and no sooner."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.api.windowed import Panes
from penstock.model.windows import WindowRule
from penstock.testing import Script
from tests.properties.streams import Step
from tests.properties.test_engines_agree_widely import outcome_or_error

HALF = 2**62
Batch = tuple[list[dict[str, Any]], int | None]


def sums(window: WindowRule, mode: str = "accumulating", trigger: ps.Trigger | None = None) -> Panes:
    cut = ps.events("v long, at timestamp").event_time("at", watermark=ps.by_hand()).window(window)
    return getattr(cut.trigger(ps.at_watermark() if trigger is None else trigger), mode)().aggregate(total=ps.sum("v"))


def agree(panes: Panes, batches: list[Batch]) -> None:
    reference, columnar = Script(panes, "reference"), Script(panes, "columnar")
    for rows, mark in batches:
        step = Step(tuple(rows), 1000, mark)
        left, right = outcome_or_error(reference, step), outcome_or_error(columnar, step)
        assert isinstance(left, tuple) == isinstance(right, tuple)
        if isinstance(left, tuple):
            return


def test_a_sum_may_leave_64_bits_in_one_partition_and_come_back_in_another() -> None:
    rows = [{"v": HALF, "at": 1}, {"v": HALF, "at": 1}, {"v": -1, "at": 1, "@partition": "1"}]
    agree(sums(ps.tumbling("10 us")), [(rows, None)])


@pytest.mark.parametrize("window", [ps.tumbling("10 us"), ps.sliding("10 us", every="5 us")], ids=str)
def test_overflow_is_judged_when_the_sum_is_shown(window: WindowRule) -> None:
    agree(sums(window), [([{"v": HALF, "at": 1}], None), ([{"v": HALF, "at": 1}], None), ([], 100)])
    agree(sums(window), [([{"v": v, "at": 1}], None) for v in (HALF, HALF, -HALF)] + [([], 100)])


def test_discarding_panes_may_add_up_to_more_than_64_bits() -> None:
    panes = sums(ps.tumbling("10 us"), "discarding", ps.repeat(ps.count(1)))
    agree(panes, [([{"v": HALF, "at": 1}], None), ([{"v": HALF, "at": 1}], None)])


def test_late_rows_cannot_overflow() -> None:
    rows = [{"v": HALF, "at": 5}, {"v": HALF, "at": 5}]
    agree(sums(ps.session("2 us")), [(rows, 8)])
