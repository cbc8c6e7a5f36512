"""What needs attention is said with its cause: each concern has a run that raises it and one that does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.checkpoint.status import Waits
from penstock.observability.health.attention import NOTE, URGENT, WARNING, Concern, attention, calm
from penstock.observability.health.concern import ABOUT
from penstock.observability.health.data_checks import STATE_BYTES
from penstock.observability.health.run_state import Situation
from penstock.observability.last_error import Failure
from penstock.observability.observation import Observation
from penstock.types.timestamps import MIN_TIME

SECOND, MINUTE = 1_000_000, 60_000_000
NOON = 1_777_636_800_000_000
SETTINGS = {"batch_every": SECOND, "batch_target": 10 * SECOND, "until": None, "shards": 2, "kept_bytes": 1 << 30,
            "sources": {"scores": {"idle": MINUTE, "when_idle": "hold"}}}  # fmt: skip


def partition(name: str, behind: int = 0, **more: Any) -> dict[str, Any]:
    held = {"source": "scores", "partition": name, "newest": NOON - behind, "watermark": NOON - behind, "idle": False,
            "silent_for": 0, "lag": None, "to_log": None, "from_log": None}  # fmt: skip
    return held | more


CALM = Observation(
    batch=0, now=NOON, wall=1000.0, seconds=0.5, elapsed=1.0, watermark=NOON, watermarks=[NOON],
    shares={"read": 0.2, "step": 0.2, "sinks": 0.1, "waiting": 0.5}, counts={"read": 500}, totals={"read": 500},
    partitions=[partition("0"), partition("1")], state={"open": 10}, settings=SETTINGS,
)  # fmt: skip
RUNNING = Situation(at=1020.0, name="scores", alive=True, batch=19)


def run_of(batches: int = 20, every: float = 1.0, **last: Any) -> list[Observation]:
    """So many calm batches; what is given is of the last one, or of each where it is a function of its number."""
    made = []
    for number in range(batches):
        told = {name: value(number) for name, value in last.items() if callable(value)}
        told |= {name: value for name, value in last.items() if not callable(value) and number == batches - 1}
        wall = 1020.0 - every * (batches - 1 - number)
        made.append(replace(CALM, batch=number, wall=wall, elapsed=every, **told))
    return made


def about(name: str, observed: list[Observation], now: Situation = RUNNING) -> list[Concern]:
    return [one for one in attention(observed, now) if one.about == name]


def only(name: str, observed: list[Observation], now: Situation = RUNNING) -> Concern:
    (one,) = about(name, observed, now)
    assert one.why
    assert one.instead
    return one


def test_nothing_to_say_is_an_empty_list_and_is_said_in_words():
    assert attention(run_of(), RUNNING) == []
    assert calm(run_of(), RUNNING).startswith("nothing needs attention")
    assert attention([], RUNNING) == []
    assert "no batch was observed yet" in calm([], RUNNING)
    assert "closed" in calm(run_of(), replace(RUNNING, finished=True))


def test_the_partition_that_holds_the_watermark_back_is_named():
    held = 4 * MINUTE + 10 * SECOND
    one = only("watermark", run_of(partitions=[partition("1"), partition("3", held), partition("2")]))
    assert one.what == "partition scores/3 holds the watermark back by 4 min 10 s"
    assert "older than those of the others" in one.why
    assert one.level == WARNING
    far = only("watermark", run_of(partitions=[partition("3", 20 * MINUTE), partition("1")]))
    assert far.level == URGENT
    near = run_of(partitions=[partition("3", 29 * SECOND), partition("1")])
    assert about("watermark", near) == []
    aside = run_of(partitions=[partition("3", held, idle=True, silent_for=2 * MINUTE), partition("1")])
    assert about("watermark", aside) == []


@pytest.mark.parametrize(
    ("slow", "idle", "why"),
    [
        ({"lag": 12_000}, MINUTE, "12,000 rows of its log are unread"),
        ({"silent_for": 20 * SECOND}, MINUTE, "silent for 20 s, and steps aside after 1 minute"),
        ({"silent_for": 20 * SECOND}, None, "idle is None: it is waited for without end"),
    ],
)
def test_why_a_partition_is_slow(slow, idle, why):
    settings = SETTINGS | {"sources": {"scores": {"idle": idle, "when_idle": "hold"}}}
    seen = run_of(partitions=[partition("3", 5 * MINUTE, **slow), partition("1")], settings=settings)
    assert why in only("watermark", seen).why


def test_a_partition_that_was_never_read_holds_everything():
    never = partition("3", newest=None, watermark=MIN_TIME, silent_for=20 * SECOND)
    seen = run_of(partitions=[never, partition("1")], watermark=MIN_TIME)
    one = only("watermark", seen)
    assert one.what == "1 partition has brought no event yet, and the watermark waits: scores/3"
    assert "steps aside after 1 minute" in one.why
    assert about("watermark", seen[-2:]) == []
    for_ever = SETTINGS | {"sources": {"scores": {"idle": None, "when_idle": "hold"}}}
    assert only("watermark", [*seen[:-1], replace(seen[-1], settings=for_ever)]).level == URGENT
    until_end = SETTINGS | {"until": "end"}
    assert about("watermark", [*seen[:-1], replace(seen[-1], settings=until_end)]) == []


def test_partitions_that_stepped_aside_are_a_note():
    aside = [partition(str(number), idle=True, silent_for=5 * MINUTE) for number in range(7)]
    one = only("idle", run_of(partitions=[*aside, partition("7")]))
    assert one.level == NOTE
    assert one.what.startswith("7 of 8 partitions are idle and nobody waits for them: scores/0, ")
    assert one.what.endswith("scores/4 and 2 more")
    assert "longer than idle='1 minute'" in one.why


def test_when_all_are_silent_the_windows_that_wait_are_named():
    silent = [partition("0", idle=True, silent_for=5 * MINUTE), partition("1", idle=True, silent_for=2 * MINUTE)]
    pane = {"stage": 0, "key": "red", "start": NOON, "end": NOON + MINUTE, "index": 0, "timing": "early",
            "final": False, "op": 1, "text": "5"}  # fmt: skip
    over = {**pane, "start": NOON - MINUTE, "end": NOON}
    seen = run_of(partitions=silent, panes=[pane, over])
    one = only("silence", seen)
    assert (
        "holds at 2026-05-01 12:00:00: 10 windows wait, among them 2026-05-01 12:00:00–2026-05-01 12:01:00" in one.what
    )
    assert "11:59" not in one.what
    assert "nothing has come for 2 min" in one.why
    assert about("idle", seen) == []
    advance = SETTINGS | {"sources": {"scores": {"idle": MINUTE, "when_idle": "advance"}}}
    assert about("silence", [*seen[:-1], replace(seen[-1], settings=advance)]) == []
    assert about("silence", [*seen[:-1], replace(seen[-1], state={"open": 0})]) == []


def test_late_events_are_a_share_with_the_worst_partition():
    rows = [{"partition": "scores/1", "late_by": 30 * SECOND}, {"partition": "scores/1", "late_by": 90 * SECOND},
            {"partition": "scores/0", "late_by": SECOND}]  # fmt: skip
    one = only("late", run_of(counts={"read": 500, "late": 200}, late=rows))
    assert one.what == "2.0 % of the events of the last ten minutes were late"
    assert "200 of 10,000" in one.why
    assert "by 30 s in the median and 1 min 30 s at most" in one.why
    assert "scores/1" in one.why
    assert about("late", run_of(counts={"read": 500, "late": 90})) == []
    assert about("late", run_of(batches=1, counts={"read": 500, "late": 90})) == []


def test_a_lag_that_grows_is_told_with_its_pace():
    def lagging(slope: int) -> list[Observation]:
        return run_of(60, partitions=lambda number: [partition("0", lag=slope * number), partition("1", lag=10)])

    one = only("lag", lagging(1_000))
    assert one.what == "the lag grows: 59,010 rows unread, 1,000 more every second"
    assert "scores/0 has the largest share, 59,000" in one.why
    assert about("lag", lagging(1)) == []
    assert about("lag", run_of(60, partitions=lambda number: [partition("0", lag=90_000 - 1_000 * number)])) == []
    assert about("lag", lagging(1_000), replace(RUNNING, alive=False)) == []


def test_sinks_that_take_the_time_or_are_waited_for():
    one = only("sink", run_of(shares=lambda _: {"read": 0.1, "step": 0.1, "sinks": 0.7, "waiting": 0.1}))
    assert one.what == "the sinks take 70 % of the time"
    waited = only("sink", run_of(waited=5.0))
    assert "25 % of the last ten minutes went into waiting for a sink" in waited.what
    now = replace(RUNNING, waiting=Waits(20, "the server at localhost does not answer", 840_000_000), at=1021.0)
    down = only("sink", run_of(), now)
    assert down.level == URGENT
    assert down.what == "batch 20 has waited for a sink for 3 min 1 s"
    assert down.why == "the server at localhost does not answer"


def test_batches_that_are_too_long():
    one = only("batches", run_of(seconds=lambda _: 16.0, every=20.0))
    assert one.what == "a batch takes 16 s, and should take 10 seconds"
    assert one.level == WARNING
    cadence = only("batches", run_of(seconds=lambda _: 2.2))
    assert cadence.what == "a batch takes 2.2 s, and batch_every is 1 second"
    assert cadence.level == NOTE
    assert about("batches", run_of(seconds=lambda _: 1.2)) == []
    catching_up = run_of(seconds=lambda _: 9.0, partitions=lambda _: [partition("0", lag=5)])
    assert about("batches", catching_up) == []
    assert about("batches", run_of(seconds=16.0)) == []


def test_notes_of_logs_are_passed_on():
    one = only("log", run_of(notes=["partition t/3 is held back by an open transaction: 120 rows wait"]))
    assert one.what == "partition t/3 is held back by an open transaction"
    assert one.level == WARNING


def test_quarantine_is_told_by_its_share_and_its_cap():
    few = only("quarantine", run_of(counts={"read": 500, "quarantined": 3}, bad=[{"why": "no JSON"}]))
    assert (few.level, few.what) == (NOTE, "3 rows of the last ten minutes were quarantined")
    assert few.why == "most often: no JSON"
    much = only("quarantine", run_of(counts={"read": 500, "quarantined": 300}))
    assert (much.level, much.what) == (WARNING, "3.0 % of the events of the last ten minutes were quarantined")
    cap = {"scores": {"read": 10_000, "bad": 80, "max_bad_rows": None, "max_bad_share": 0.01}}
    near = only("quarantine", run_of(counts={"read": 500, "quarantined": 3}, sources=cap))
    assert near.level == URGENT
    assert "80 of 10,000 rows of scores were quarantined, 80 % of what max_bad allows" in near.what
    rows = {"scores": {"read": 10, "bad": 6, "max_bad_rows": 10, "max_bad_share": None}}
    assert only("quarantine", run_of(sources=rows)).level == URGENT
    far = {"scores": {"read": 10_000, "bad": 40, "max_bad_rows": None, "max_bad_share": 0.01}}
    assert about("quarantine", run_of(sources=far)) == []


def test_a_source_of_which_nothing_is_of_use_is_urgent_unless_that_is_meant():
    bad = [{"why": f"a.json: column 'n': 'x{n}' is not an integer"} for n in range(4)] + [{"why": "event time is null"}]
    nothing = {"read": 500, "quarantined": 500}
    every = only("quarantine", run_of(batches=1, counts=nothing, bad=bad))
    assert (every.level, every.what) == (URGENT, "every row of the last ten minutes was quarantined, 500 rows")
    assert every.why == "most often: a.json: column 'n': 'x0' is not an integer"
    of_one = {"teams": {"read": 500, "bad": 500, "max_bad_rows": None, "max_bad_share": None}}
    some = only("quarantine", run_of(counts={"read": 900, "quarantined": 500, "kept": 400}, sources=of_one))
    assert (some.level, some.what) == (URGENT, "all 500 rows of teams were quarantined: none was of use")
    meant = {"teams": {**of_one["teams"], "max_bad_share": 1.0}}
    assert only("quarantine", run_of(batches=1, counts=nothing, sources=meant)).level == NOTE
    twice = {"read": 500, "quarantined": 500, "kept": 500, "given": 500}
    assert only("quarantine", run_of(batches=1, counts=twice, sources=of_one)).level == NOTE


def test_rows_that_nobody_writes_have_little_room():
    one = only("kept", run_of(sinks={"kept/late": 600 << 20, "scores/panes": 3}))
    assert one.what == "the late rows that nobody writes have filled 59 % of their room, 1.0 GB"
    assert about("kept", run_of(sinks={"kept/late": 100 << 20})) == []


def test_row_16_a_hot_key_is_named_with_its_share():
    others = [[f"key {number}", 0.01, 0.0] for number in range(19)]
    one = only("hot_key", run_of(hot=[["red", 0.82, 0.01], *others]))
    assert one.what == "the key 'red' has 81 % of the events"
    assert "the next one has 1.0 %" in one.why
    assert about("hot_key", run_of(hot=[["red", 0.4, 0.2], *others])) == []
    assert about("hot_key", run_of(hot=[["red", 0.5, 0.0], ["blue", 0.5, 0.0]])) == []
    assert about("hot_key", run_of(batches=1, hot=[["red", 0.9, 0.0], *others])) == []


def test_row_17_a_large_state_raises_an_alarm():
    large = 2 * STATE_BYTES + 1
    one = only("state", run_of(state={"open": 10, "rows": 2_000_000, "bytes": large}))
    assert one.what == "the state has 1.0 GB in 2 shards"
    assert about("state", run_of(state={"open": 10, "rows": 2_000_000, "bytes": large - 1})) == []
    fat = only("state", run_of(state={"open": 10, "bytes": 1 << 26, "largest": 64 << 20}))
    assert fat.what == "one part of the state has 64 MB"


def test_row_17_a_state_that_grows_and_grows():
    one = only("state", run_of(60, 5.0, state=lambda number: {"rows": 10_000 * number}))
    assert one.what == "the state grows: from 190,000 to 400,000 rows in 4 min 55 s"
    sawtooth = run_of(60, 5.0, state=lambda number: {"rows": 10_000 * (number % 20)})
    assert about("state", sawtooth) == []
    small = run_of(60, 5.0, state=lambda number: {"rows": 10 * number})
    assert about("state", small) == []


def test_batches_that_were_run_again():
    ledgers = {"scores/panes/sqlite": {"batch": 19, "had": True}}
    one = only("replay", run_of(replayed=True, ledgers=ledgers, sinks={"scores/panes/sqlite": 19}))
    assert (one.level, one.what) == (NOTE, "batch 19 was run again")
    assert "scores/panes/sqlite had it already" in one.why
    often = only("replay", run_of(replayed=lambda number: number % 5 == 0))
    assert (often.level, often.what) == (WARNING, "batch 15 was run again (4 times in ten minutes)")


def test_a_ledger_that_differs_from_the_checkpoint():
    one = only("sink", run_of(ledgers={"a/panes": {"batch": 12}}, sinks={"a/panes": 19}))
    assert one.level == URGENT
    assert one.what == "the ledger of a/panes is at batch 12, and the checkpoint gave it batch 19"
    assert about("sink", run_of(ledgers={"a/panes": {"batch": 19}}, sinks={"a/panes": 19})) == []


def test_a_run_that_is_not_alive():
    died = only("run", run_of(), replace(RUNNING, alive=False, at=1140.0, who="process 12 on here"))
    assert (died.level, died.what) == (URGENT, "the run died after batch 19, 2 min ago")
    assert "process 12 on here is gone" in died.why
    stopped = only("run", run_of(), replace(RUNNING, alive=False, stopped=True))
    assert (stopped.level, stopped.what) == (NOTE, "the run was stopped after batch 19, 0.00 s ago")
    failed = Failure(1, "replay diverged", "it had 6 rows", "stop")
    told = only("run", run_of(), replace(RUNNING, alive=False, stopped=True, failure=failed))
    assert told == Concern(URGENT, "run", "the run failed after batch 19, 0.00 s ago: replay diverged", "it had 6 rows",
                           "stop")  # fmt: skip
    assert about("run", run_of(), replace(RUNNING, alive=False, finished=True)) == []
    assert about("run", run_of(), replace(RUNNING, alive=None)) == []


def test_a_run_that_stands_still():
    one = only("stall", run_of(), replace(RUNNING, at=1020.0 + 200))
    assert one.what == "no batch has ended for 3 min 20 s"
    unseen = only("stall", run_of(), replace(RUNNING, at=1020.0 + 200, alive=None))
    assert "cannot be seen from here" in unseen.why
    assert about("stall", run_of(), replace(RUNNING, at=1020.0 + 50)) == []
    hourly = run_of(settings=SETTINGS | {"batch_every": 3_600 * SECOND})
    assert about("stall", hourly, replace(RUNNING, at=1020.0 + 4_000)) == []


def test_batches_that_could_not_be_observed():
    one = only("observing", run_of(missed=3))
    assert one.what == "3 batches could not be written down"
    unseen = only("observing", run_of(), replace(RUNNING, batch=25, at=1020.0 + 100))
    assert unseen.what == "the last 6 batches of the run cannot be seen"
    assert about("observing", run_of(), replace(RUNNING, batch=25)) == []


def test_the_most_urgent_comes_first_and_every_kind_has_its_place():
    seen = run_of(60, 5.0, partitions=[partition("3", 20 * MINUTE), partition("4", idle=True), partition("1")],
                  counts={"read": 30_000, "late": 2_000, "quarantined": 1}, replayed=True)  # fmt: skip
    told = attention(seen, RUNNING)
    assert [one.about for one in told] == ["watermark", "late", "quarantine", "replay", "idle"]
    assert {one.about for one in told} <= set(ABOUT)


def test_what_happened_long_ago_is_forgotten():
    old = replace(CALM, wall=10.0, replayed=True)
    assert about("replay", [old, *run_of()]) == []


def test_names_that_would_move_a_terminal_are_shown_by_their_numbers():
    one = only("watermark", run_of(partitions=[partition("\x1b[2J", 5 * MINUTE), partition("1")]))
    assert "\x1b" not in one.what
