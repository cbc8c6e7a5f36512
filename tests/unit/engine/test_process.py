"""Keyed functions: state, timers, time to live and order, each rule once, on both implementations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from penstock.diagnostics.user_functions import message_of
from penstock.errors import DataError
from penstock.plan.operators.process import KeyedFunction, Process, Timer, items, mapping, value
from penstock.plan.stages import Side
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.unit.engine.playing_stages import SECOND, Played, player

LOGINS = Side("logins", schema("user string, ok boolean"), ("user",))
Play = Callable[..., Played]


@pytest.fixture(params=["reference", "columnar"])
def play(request: pytest.FixtureRequest) -> Play:
    return lambda function, side=LOGINS, ordered=False: player(request.param, Process(function, ordered), side)


class ThreeInARow(KeyedFunction):
    """Three failed logins in a row raise an alert; a success resets."""

    output = "user string, tries long, at timestamp"
    sides = {"resets": "user string"}  # noqa: RUF012
    failures = value("long", default=0, ttl="1 hour")

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        if event["ok"]:
            if self.failures:
                context.emit_to("resets", user=key)
            del self.failures
            return
        self.failures += 1
        if self.failures == self.limit:
            context.emit(user=key, tries=self.failures, at=context.time)
            del self.failures


def test_three_failed_logins_in_a_row_raise_an_alert_and_a_success_resets(play: Play) -> None:
    run = play(ThreeInARow())
    run.batch([(1, "ann", False), (2, "ann", False), (3, "bob", False), (4, "ann", True)])
    run.batch([(5, "ann", False), (6, "ann", False)])
    assert run.rows() == []
    run.batch([(7, "ann", False), (8, "bob", False)])
    assert run.rows() == [(7, {"user": "ann", "tries": 3, "at": 7 * SECOND})]
    assert run.rows("resets") == [(4, {"user": "ann"})]
    assert run.held() == 1


def test_a_function_may_have_settings(play: Play) -> None:
    run = play(ThreeInARow(limit=1))
    run.batch([(1, "ann", False)])
    assert [row["tries"] for _, row in run.rows()] == [1]


def test_the_order_of_arrival_is_partition_and_offset_unless_order_is_asked_for(play: Play) -> None:
    for ordered, seen in ((False, [5, 1, 3]), (True, [1, 3, 5])):
        run = play(Times(), ordered=ordered)
        run.batch([(5, "a", True, "p"), (1, "a", True, "p"), (3, "a", True, "q")])
        run.batch([], watermark=10)
        assert [time for time, _ in run.rows()] == seen


class Times(KeyedFunction):
    """Tells every time it is called with."""

    output = "at timestamp"

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        context.emit(at=context.time)


def test_in_order_an_arrival_behind_w_is_late_and_without_order_nothing_is(play: Play) -> None:
    for ordered, late in ((False, 0), (True, 1)):
        run = play(Times(), ordered=ordered)
        run.batch([(4, "a", True), (5, "a", True)], watermark=5)
        assert len(run.late) == late


def test_in_order_an_event_waits_until_w_has_passed_it(play: Play) -> None:
    run = play(Times(), ordered=True)
    run.batch([(5, "a", True)])
    run.batch([], watermark=5)
    assert (run.rows(), run.held()) == ([], 1)
    run.batch([], watermark=6)
    assert (len(run.rows()), run.held()) == (1, 0)


class Alarm(KeyedFunction):
    """Sets timers as `name` says: seconds, or c and seconds of the processing clock."""

    output = "said string, at timestamp"

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        context.emit(said="event", at=context.time)
        for word in event["set"].split():
            if word.startswith("-"):
                context.cancel(datetime.fromtimestamp(int(word[1:]), UTC))
            elif word.startswith("c"):
                context.timer(datetime.fromtimestamp(int(word[1:]), UTC), kind="processing")
            else:
                time, _, name = word.partition("=")
                context.timer(datetime.fromtimestamp(int(time), UTC), name)

    def on_timer(self, timer: Timer, key: str, context: Any) -> None:
        context.emit(said=f"{timer.kind} {timer.name}".strip(), at=context.time)
        if timer.name == "back":
            context.timer(timer.time - timedelta(seconds=1), "again")
        if timer.name == "on":
            context.timer(timer.time + timedelta(seconds=1), "on")


ALARMS = Side("alarms", schema("key string, set string"), ("key",))


def said(run: Played) -> list[tuple[int, str]]:
    return [(time, row["said"]) for time, row in run.rows()]


def test_event_timers_fire_when_w_reaches_them_in_order_of_time_and_name_before_arrivals(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "9=z 5 9=b 9=b 20")], watermark=0)
    assert run.held() == 4
    run.batch([(11, "a", "")], watermark=9)
    assert said(run)[1:] == [(5, "event"), (9, "event b"), (9, "event z"), (11, "event")]
    assert run.held() == 1


def test_in_order_a_timer_comes_before_events_of_its_time_and_after_earlier_ones(play: Play) -> None:
    run = play(Alarm(), ALARMS, ordered=True)
    run.batch([(1, "a", "5=t"), (4, "a", ""), (5, "a", ""), (6, "a", "")], watermark=0)
    run.batch([], watermark=7)
    assert said(run) == [(1, "event"), (4, "event"), (5, "event t"), (5, "event"), (6, "event")]


def test_processing_timers_fire_when_now_reaches_them_and_their_rows_have_the_time_w(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "c50")], now=40)
    run.batch([], now=49, watermark=3)
    assert len(run.rows()) == 1
    run.batch([(5, "a", "")], now=50, watermark=3)
    assert said(run)[1:] == [(5, "event"), (3, "processing")]


def test_while_there_is_no_w_a_processing_timer_has_the_time_now(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "c50")], now=50)
    assert said(run) == [(1, "event"), (50, "processing")]


def test_a_timer_in_the_past_fires_in_the_same_batch(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(8, "a", "3=past"), (9, "a", "")], watermark=5)
    assert said(run) == [(8, "event"), (9, "event"), (3, "event past")]
    in_order = play(Alarm(), ALARMS, ordered=True)
    in_order.batch([(8, "a", "3=past"), (9, "a", "")], watermark=5)
    in_order.batch([], watermark=10)
    assert said(in_order) == [(8, "event"), (3, "event past"), (9, "event")]


def test_a_timer_that_a_timer_sets_at_or_before_its_own_time_waits_for_the_next_batch(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "4=back")], watermark=0)
    run.batch([], watermark=9)
    assert said(run)[1:] == [(4, "event back")]
    assert (run.hold, run.held()) == (3 * SECOND, 1)
    run.batch([], watermark=9)
    assert said(run)[2:] == [(3, "event again")]
    assert (run.hold, run.held()) == (MAX_TIME, 0)


def test_a_timer_that_sets_itself_again_for_ever_does_not_keep_the_last_batch_from_ending(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "4=on")], watermark=0)
    run.batch([], watermark=6)
    assert said(run)[1:] == [(4, "event on"), (5, "event on"), (6, "event on")]
    run.batch([], watermark=MAX_TIME // SECOND + 1)
    assert said(run)[4:] == [(7, "event on")]


def test_a_cancelled_timer_does_not_fire(play: Play) -> None:
    run = play(Alarm(), ALARMS)
    run.batch([(1, "a", "5 6"), (2, "a", "-5")], watermark=0)
    run.batch([], watermark=9)
    assert said(run)[2:] == [(6, "event")]


class Faulty(KeyedFunction):
    """Writes everything and then throws, if its event says so."""

    output = "total long"
    total = value("long", default=0)
    log = items("string")
    seen = mapping("string", "long")

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        self.total += 1
        self.log.append("x")
        self.seen["n"] = self.total
        context.emit(total=self.total)
        context.timer("1 second")
        if not event["ok"]:
            self.log.clear()
            self.seen.clear()
            self.total = event["ok"] is None or "text"

    def on_timer(self, timer: Timer, key: str, context: Any) -> None:
        raise KeyError("nothing")


def test_a_call_that_throws_quarantines_its_row_and_leaves_no_trace(play: Play) -> None:
    run = play(Faulty())
    run.batch([(1, "a", True), (2, "a", False), (3, "b", False)])
    assert [(bad["user"], step) for bad, step, _ in run.bad] == [("a", "process"), ("b", "process")]
    reason = run.bad[0][2]
    assert message_of(reason) == "self.total was given str: 'text' is not an integer; give it a long"
    assert re.search(r" · in Faulty\.on_event \(test_process\.py, line \d+\) · with \{'ok': False, ", reason)
    assert [row for _, row in run.rows()] == [{"total": 1}]
    assert run.held() == 4  # of key a: a value, an item, an entry and a timer


def test_in_order_the_row_of_a_call_that_throws_is_found_though_it_came_in_an_earlier_batch(play: Play) -> None:
    run = play(Faulty(), ordered=True)
    run.batch([(1, "a", False), (2, "b", None)])
    run.batch([(5, "c", True)], watermark=3)
    assert [(bad["user"], reason.split(":")[0]) for bad, _, reason in run.bad] == [
        ("a", "self.total was given str"),
        ("b", "self.total was given bool"),
    ]


def test_a_timer_that_throws_stops_the_run_and_says_which(play: Play) -> None:
    run = play(Faulty())
    run.batch([(1, "a", True)])
    with pytest.raises(DataError) as caught:
        run.batch([], watermark=2)
    assert "Faulty.on_timer failed for the key 'a' and the event timer of 1970-01-01T00:00:02" in caught.value.what
    assert re.search(r"KeyError: 'nothing' · in Faulty\.on_timer \(test_process\.py, line \d+\)$", caught.value.what)
    assert caught.value.why.startswith("there is no row that could be quarantined")
    assert caught.value.instead


class Lasting(KeyedFunction):
    """Remembers the last events for ten seconds, by either clock."""

    output = "saw string"
    mark = value("long", ttl="10 seconds")
    recent = items("long", ttl="10 seconds")
    by = mapping("string", "long", ttl="10 seconds", ttl_by="processing")

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        context.emit(saw=f"{self.mark} {self.recent} {sorted(self.by)}")
        self.mark = int(context.time.timestamp())
        self.recent.append(self.mark)
        self.by[str(self.mark)] = 1


def saw(run: Played) -> list[str]:
    return [row["saw"] for _, row in run.rows()]


def test_an_entry_is_let_go_once_w_reaches_its_write_and_its_ttl(play: Play) -> None:
    run = play(Lasting())
    run.batch([(1, "a", True), (5, "a", True)], now=0)
    run.batch([], watermark=11)
    assert run.held() == 1 + 1 + 2
    run.batch([(12, "a", True)], watermark=14)
    assert saw(run)[2:] == ["5 [5] ['1', '5']"]
    run.batch([], watermark=24, now=9)
    assert run.held() == 3
    run.batch([], watermark=24, now=10)
    assert run.held() == 0


def test_without_order_a_write_behind_w_counts_from_w(play: Play) -> None:
    run = play(Lasting())
    run.batch([(1, "a", True)], watermark=30)
    run.batch([(2, "a", True)], watermark=39)
    run.batch([(3, "a", True)], watermark=40)
    assert saw(run) == ["None [] []", "1 [1] ['1']", "2 [2] ['1', '2']"]


def test_in_order_an_entry_is_seen_until_its_ttl_after_its_write_however_far_w_jumps(play: Play) -> None:
    run = play(Lasting(), ordered=True)
    run.batch([(1, "a", True), (10, "a", True), (12, "a", True), (22, "a", True)])
    run.batch([], watermark=1_000)
    assert [one.split(" [")[0] for one in saw(run)] == ["None", "1", "10", "None"]
    assert run.held() == 4  # entries by the processing clock
    assert saw(run)[2].startswith("10 [10]")


def test_a_state_of_every_type_is_as_it_was_after_a_restart(play: Play) -> None:
    run = play(Typed(), Side("e", schema("user timestamp, ok boolean"), ("user",)))
    run.batch([(1, 7 * SECOND, True)])
    run.restart()
    run.batch([(2, 7 * SECOND, False)], watermark=MIN_TIME // SECOND)
    assert run.bad == []
    (_, row), *_ = run.rows()
    assert row["saw"] == f"{Typed.SAMPLES} {datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)!r}"


class Typed(KeyedFunction):
    """A field of each type, in each shape."""

    output = "saw string"
    SAMPLES = (
        True, 7, 2**40, 0.5, -0.0, "text", b"\0\1", date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
        Decimal("12.50"),
    )  # fmt: skip
    KINDS = (
        "boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp", "decimal(10,2)",
    )  # fmt: skip
    for _i, _kind in enumerate(KINDS):
        locals()[f"v{_i}"] = value(_kind)
        locals()[f"l{_i}"] = items(_kind)
        locals()[f"m{_i}"] = mapping(_kind, _kind)

    def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
        if event["ok"]:
            for i, sample in enumerate(self.SAMPLES):
                setattr(self, f"v{i}", sample)
                setattr(self, f"l{i}", [sample, sample])
                setattr(self, f"m{i}", {sample: sample})
            return
        seen = tuple(getattr(self, f"v{i}") for i in range(len(self.SAMPLES)))
        for i, sample in enumerate(self.SAMPLES):
            assert getattr(self, f"l{i}") == [sample, sample]
            assert getattr(self, f"m{i}") == {sample: sample}
        context.emit(saw=f"{seen} {key!r}")
