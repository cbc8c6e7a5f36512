"""Laws of panes and time, on both engines: what any run of any plan over any stream must show."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from hypothesis import given

import penstock as ps
from penstock.model.panes import Pane
from penstock.model.triggers import When
from penstock.model.windows import Window
from penstock.plan.stages import Plan
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from penstock.types.timestamps import MIN_TIME, plus
from tests.properties.plans import END_OF_TIME, plans, resizes, with_mode
from tests.properties.profile import law
from tests.properties.streams import Step, play, played, scripts

Place = tuple[object, Window]


@dataclass(frozen=True)
class Played:
    """A run: for each batch the rows read, its W, what it gave and the W after it."""

    plan: Plan
    script: Script
    batches: list[tuple[Step, int, Outcome, int]]

    @property
    def panes(self) -> list[Pane]:
        return self.script.panes


def history(plan: Plan, steps: list[Step], engine: str) -> Played:
    """A script, played and written down."""
    script, batches = Script(plan, engine), []
    for step in steps:
        reached = max(script.W, step.watermark if step.watermark is not None else script.W)
        outcome = play(script, step)
        batches.append((step, reached, outcome, script.W))
        conserved(script, batches)
    return Played(plan, script, batches)


def where(pane: Pane) -> Place:
    """The window of a key that a pane is of."""
    return pane.key, pane.window


def whole(pane: Pane) -> tuple[object, ...]:
    """All that a withdrawal repeats."""
    return (*where(pane), pane.index, pane.timing, pane.event_time, repr(pane.values))


def by_window(panes: list[Pane]) -> dict[Place, list[Pane]]:
    found: dict[Place, list[Pane]] = defaultdict(list)
    for pane in panes:
        found[where(pane)].append(pane)
    return found


def standing(panes: list[Pane]) -> dict[Place, Pane]:
    """The last pane of each window that was not withdrawn after it."""
    last = {place: shown[-1] for place, shown in by_window(panes).items()}
    return {place: pane for place, pane in last.items() if pane.op == 1}


@law(50)
@given(plans(), scripts(ended=True))
def test_discarding_panes_add_up_to_the_accumulating_one(engine: str, plan: Plan, steps: list[Step]) -> None:
    what = {"n": ps.rows(), "total": ps.sum("v"), "known": ps.count("v")}
    accumulating = Script(with_mode(plan, "accumulating", **what), engine)
    discarding = Script(with_mode(plan, "discarding", **what), engine)
    # A predicate looks at the pane that would be shown, so `when` fires at other times in another mode.
    alike = not any(isinstance(part, When) for part in plan.trigger.walk())
    for i, step in enumerate(steps):
        play(accumulating, step)
        play(discarding, step)
        if alike or i == len(steps) - 1:
            last, sums = standing(accumulating.panes), by_window(discarding.panes)
            for name in what:
                added = {place: sum(pane.op * (pane.values[name] or 0) for pane in panes)  # type: ignore[operator]
                         for place, panes in sums.items()}  # fmt: skip
                shown = {place: last[place].values[name] or 0 if place in last else 0 for place in sums}
                assert added == shown
            assert last.keys() <= sums.keys()


@law(120)
@given(plans(), scripts())
def test_every_law_of_panes_and_time(engine: str, plan: Plan, steps: list[Step]) -> None:
    run = history(plan, steps, engine)
    for check in LAWS:
        check(run)


def conserved(script: Script, batches: list[tuple[Step, int, Outcome, int]]) -> None:
    """After every batch each row read is filtered, quarantined, late or kept, and each kept one is in a window."""
    counts = script.counts
    assert counts.read == sum(len(step.rows) for step, *_ in batches)
    assert counts.read == counts.filtered + counts.quarantined + counts.late + counts.kept
    assert (counts.quarantined, counts.late) == (len(script.quarantined), len(script.late))
    assert counts.placed == counts.ended + script.run.open_records() >= counts.kept


def nothing_is_left_in_silence(run: Played) -> None:
    """Once the input has ended, no window is open, and the standing accumulating panes hold every placement."""
    if run.batches[-1][1] < END_OF_TIME:
        return
    assert run.script.run.open_windows() == 0
    if run.plan.shown_mode != "discarding" and not resizes(run.plan.window):
        shown = sum(pane.values["n"] for pane in standing(run.panes).values())  # type: ignore[misc]
        assert shown == run.script.counts.placed


def a_withdrawal_repeats_the_last_pane_of_its_window(run: Played) -> None:
    """In discarding mode it holds the sum of all that the window showed."""
    last: dict[Place, Pane] = {}
    shown: Counter[Place] = Counter()
    for pane in run.panes:
        if pane.op == 1:
            last[where(pane)] = pane
            shown[where(pane)] += pane.values["n"]  # type: ignore[operator, assignment]
            continue
        taken = last.pop(where(pane))
        if run.plan.shown_mode == "discarding":
            assert (pane.index, pane.timing, pane.event_time) == (taken.index, taken.timing, taken.event_time)
            assert pane.values["n"] == shown.pop(where(pane))
        else:
            assert whole(pane) == whole(taken)


def retractions_cancel(run: Played) -> None:
    """Every -1 takes back a +1 that stands, and at most one +1 of a window is left standing."""
    if run.plan.shown_mode != "retracting":
        return
    net: Counter[tuple[object, ...]] = Counter()
    for pane in run.panes:
        net[whole(pane)] += pane.op
        assert net[whole(pane)] in (0, 1)
    left = Counter(identity[:2] for identity, times in net.items() if times)
    assert all(times == 1 for times in left.values())


def key_window_index_and_op_are_unique_for_ever(run: Played) -> None:
    """And the indexes of a window count from 0 without a gap."""
    assert len({(*where(pane), pane.index, pane.op) for pane in run.panes}) == len(run.panes)
    for shown in by_window([pane for pane in run.panes if pane.op == 1]).values():
        assert [pane.index for pane in shown] == list(range(len(shown)))


def a_batch_shows_one_pane_of_a_window_at_most(run: Played) -> None:
    for _, _, outcome, _ in run.batches:
        assert max(Counter(where(pane) for pane in outcome.panes if pane.op == 1).values(), default=0) <= 1


def early_then_on_time_then_late_and_final_last(run: Played) -> None:
    for shown in by_window(run.panes).values():
        timings = [pane.timing for pane in shown if pane.op == 1]
        assert timings == sorted(timings, key=("early", "on_time", "late").index)
        assert timings.count("on_time") <= 1
        assert not any(pane.final for pane in shown[:-1])
        assert not any(pane.final for pane in shown if pane.op == -1)


def nothing_leaves_a_window_after_it_expired(run: Played) -> None:
    """The pane of the batch under whose W it expires is final, no other is, and none comes after it."""
    before = MIN_TIME
    for _, reached, outcome, _ in run.batches:
        for pane in outcome.panes:
            expires = plus(run.plan.window.complete_at(pane.window.end), run.plan.lateness)
            if pane.op == 1 and not resizes(run.plan.window):
                assert before < expires
                assert pane.final == (expires <= reached)
        before = reached


def the_watermark_is_monotone(run: Played) -> None:
    """It never goes back, and a late row is behind the W of its batch."""
    before = MIN_TIME
    for _, reached, outcome, after in run.batches:
        assert before <= reached <= after
        assert all(late.watermark == reached > late.event_time for late in outcome.late)
        assert all(late.late_by == reached - late.event_time for late in outcome.late)
        before = after


LAWS = (
    nothing_is_left_in_silence, a_withdrawal_repeats_the_last_pane_of_its_window, retractions_cancel,
    key_window_index_and_op_are_unique_for_ever, a_batch_shows_one_pane_of_a_window_at_most,
    early_then_on_time_then_late_and_final_last, nothing_leaves_a_window_after_it_expired, the_watermark_is_monotone,
)  # fmt: skip


@law(30)
@given(plans(), scripts())
def test_the_same_script_twice_gives_the_same_panes_and_bytes(engine: str, plan: Plan, steps: list[Step]) -> None:
    one, two = (played(plan, steps, engine) for _ in range(2))
    assert list(map(repr, one.panes)) == list(map(repr, two.panes))
    assert list(map(repr, one.late)) == list(map(repr, two.late))
    assert one.W == two.W
    if engine == "columnar":
        assert repr(one.run.snapshot()) == repr(two.run.snapshot())
