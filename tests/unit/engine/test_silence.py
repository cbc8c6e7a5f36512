"""When nothing arrives: hold, advance, outages; and the time bases that are not a column of the event."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.types.timestamps import parse, show


@pytest.fixture
def play(engine):
    """A script that counts all events of an hour, with this watermark rule."""

    def made(rule, partitions=()):
        stream = ps.events("at timestamp").event_time("at", watermark=rule)
        return Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine, partitions=partitions)

    return made


def at(*times):
    return [{"at": time} for time in times]


def w(script):
    return show(script.W)


def test_when_all_are_silent_the_watermark_holds(play):
    script = play(ps.bounded("1 minute", idle="1 minute"))
    script.batch(at("12:10"), now="12:10")
    script.advance("23:00")
    assert w(script) == "12:09:00"


def test_when_all_are_silent_the_watermark_may_advance_with_the_clock(play):
    script = play(ps.bounded("1 minute", idle="5 minutes", when_idle="advance"))
    script.batch(at("12:50"), now="12:51")
    script.advance("12:55")
    assert w(script) == "12:49:00"  # not yet idle
    script.advance("12:56")
    assert w(script) == "12:54:00"  # 12:50 + 5 minutes of silence - 1 minute
    script.advance("13:02")
    script.advance("13:02")
    script.expect({"n": 1, "timing": "on_time"})  # the last window closes by itself


def test_when_all_fall_silent_those_that_spoke_last_are_the_last_to_step_aside(play):
    script = play(ps.ascending(idle="1 minute"))
    script.batch(at("12:00"), partition="a", now="12:00")
    script.batch(at("12:30"), partition="b", now="12:00:30")
    assert w(script) == "12:00:00"
    script.advance("12:10")
    assert w(script) == "12:30:00"  # as if a had gone first, half a minute earlier


def test_partitions_that_fall_silent_together_hold_their_minimum(play):
    script = play(ps.ascending(idle="1 minute"))
    script.batch([{"@partition": "a", "at": "12:00"}, {"@partition": "b", "at": "12:30"}], now="12:30")
    script.advance("12:50")
    assert w(script) == "12:00:00"


def test_after_an_outage_silence_is_counted_anew(play):
    script = play(ps.ascending(idle="1 minute"))
    script.batch([{"@partition": "a", "at": "12:00"}, {"@partition": "b", "at": "12:30"}], now="12:30")
    script.resume("15:00")
    script.batch([{"@partition": "b", "at": "12:40"}], now="15:00:30")
    assert w(script) == "12:00:00"  # the hours of the outage were not a's silence
    script.batch([{"@partition": "b", "at": "12:40"}], now="15:01")
    assert w(script) == "12:40:00"


def test_an_outage_does_not_let_the_watermark_advance(play):
    script = play(ps.ascending(idle="1 minute", when_idle="advance"))
    script.batch(at("12:00"), now="12:00")
    script.resume("20:00")
    assert w(script) == "12:00:00"
    script.advance("20:02")
    assert w(script) == "12:02:00"


def test_time_moves_on_without_data(play):
    script = play(ps.bounded("0", idle="1 minute", when_idle="advance"))
    script.batch(at("12:00"), now="12:00")
    for minute in range(1, 70):
        script.advance(parse("12:00") + minute * 60_000_000)
    script.expect({"n": 1})


def test_the_processing_clock_never_goes_back(play):
    script = play(ps.ascending(max_skew="1 hour"))
    script.batch(at("12:00"), now="12:00")
    script.batch(at("12:30"), now="11:00")
    assert script.quarantined == []
    assert script.run.now == parse("12:00")


def test_processing_time_is_the_now_of_the_batch(engine):
    stream = ps.events("v long").processing_time()
    script = Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
    script.batch([{"v": 1}], now="12:00:10")
    script.batch([{"v": 1}], now="12:00:50")
    script.advance("12:01")
    script.expect()
    script.advance("12:01")
    script.expect({"start": "12:00", "end": "12:01", "n": 2, "timing": "on_time"})


def test_processing_time_moves_its_watermark_between_batches_as_any_other(engine):
    stream = ps.events("v long").processing_time()
    script = Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
    script.batch([{"v": 1}], now="12:00:10")
    assert w(script) == "12:00:10"
    script.batch([{"v": 1}], now="12:05")
    assert w(script) == "12:05:00"
    assert script.late == []


def test_processing_time_is_never_late(engine):
    stream = ps.events("v long").processing_time()
    script = Script(stream.window(ps.tumbling("1 second")).aggregate(n=ps.rows()), engine)
    for now in ("12:00", "12:00", "12:00:05", "11:00", "13:00"):
        script.batch([{"v": 1}], now=now)
    assert script.late == []


def test_ingestion_time_is_a_column_in_order(engine):
    stream = ps.events("taken timestamp").ingestion_time("taken")
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"taken": "12:00"}, {"taken": "13:00"}])
    assert w(script) == "13:00:00"
    script.batch()
    script.expect({"n": 1, "start": "12:00"})


@pytest.mark.parametrize(("kind", "unit", "value"), [
    ("long", "s", 43_200), ("long", "ms", 43_200_000), ("long", "us", 43_200_000_000), ("double", "s", 43_200.0),
    ("string", None, "1970-01-01T12:00:00"), ("string", None, "1970-01-01T14:00+02:00"), ("timestamp", None, "12:00"),
])  # fmt: skip
def test_event_time_may_be_a_number_a_text_or_a_timestamp(engine, kind, unit, value):
    stream = ps.events(f"at {kind}").event_time("at", unit=unit, watermark=ps.ascending())
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": value}])
    assert w(script) == "12:00:00"


def test_event_time_may_be_a_date_which_is_its_midnight_in_utc(engine):
    stream = ps.events("day date").event_time("day", watermark=ps.ascending())
    script = Script(stream.window(ps.calendar("day")).aggregate(n=ps.rows()), engine)
    script.batch([{"day": "2026-01-02"}])
    assert w(script) == "2026-01-02 00:00:00"
