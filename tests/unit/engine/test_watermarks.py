"""When, the clock side: how the watermark follows each rule, each partition and the silence."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.runtime.batch import Tick
from penstock.testing import Script
from penstock.types.timestamps import MIN_TIME, parse, show


@pytest.fixture
def play(engine):
    """A script that counts all events of an hour, with this watermark rule."""

    def made(rule, partitions=(), columns="at timestamp"):
        stream = ps.events(columns).event_time("at", watermark=rule)
        return Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine, partitions=partitions)

    return made


def at(*times, **more):
    return [{"at": time, **more} for time in times]


def w(script):
    """The watermark of the batch to come, as text."""
    return show(script.W)


# the rules


def test_bounded_is_the_newest_event_time_less_the_delay(play):
    script = play(ps.bounded("2 minutes"))
    assert w(script) == "-inf"
    script.batch(at("12:10", "12:03"))
    assert w(script) == "12:08:00"


def test_the_watermark_is_fixed_for_a_batch_and_moves_between(play):
    script = play(ps.ascending())
    script.batch(at("13:30", "12:00"))  # the second is behind the first, but in one batch
    script.batch(at("12:10"))
    script.expect_late({"at": parse("12:10"), "W": parse("13:30")})
    script.expect({"n": 1, "start": "12:00"})


def test_the_watermark_never_goes_back(play):
    script = play(ps.bounded("1 minute"))
    seen = []
    for time in ("12:10", "11:00", "12:05", "12:30", "09:00"):
        script.batch(at(time), now="13:00")
        seen.append(script.W)
    assert seen == sorted(seen)
    script.watermark("10:00")
    assert w(script) == "12:29:00"


def test_ascending_waits_for_nothing(play):
    script = play(ps.ascending())
    script.batch(at("12:10"))
    assert w(script) == "12:10:00"


def test_percentile_waits_for_the_delays_it_has_seen(play):
    script = play(ps.percentile(0.5))
    script.batch(at("12:10", "12:08", "12:06", "12:10"))  # delays 0, 2, 4 and 0 minutes
    assert w(script) == "12:10:00"
    script.batch(at("12:06", "12:06"), now="12:20")  # two more of 4: half of them are up to 2 minutes
    assert w(script) == "12:10:00"  # never back
    script.batch(at("12:20"), now="12:20")
    assert w(script) == "12:18:00"


def test_percentile_counts_in_whole_numbers(play):
    script = play(ps.percentile(0.07))
    script.batch(at("12:01:39", *(f"12:{second // 60:02d}:{second % 60:02d}" for second in range(98, -1, -1))))
    # Delays of 0 to 99 seconds: seven of a hundred are at most 6 seconds, though 0.07 * 100 is above 7 in floats.
    assert w(script) == "12:01:33"


def test_percentile_one_waits_for_the_longest_delay(play):
    script = play(ps.percentile(1))
    script.batch(at("12:10", "12:01", "12:09"))
    assert w(script) == "12:01:00"


def test_percentile_counts_delays_in_the_order_of_the_partition(play):
    script = play(ps.percentile(1))
    script.batch([*at("12:00", **{"@partition": "a"}), *at("12:30", **{"@partition": "b"})])
    assert w(script) == "12:00:00"  # b is no delay of a's


def test_percentile_stays_between_floor_and_ceiling(play):
    script = play(ps.percentile(1, floor="1 minute", ceiling="5 minutes"))
    script.batch(at("12:10"))
    assert w(script) == "12:09:00"
    script.batch(at("12:30", "12:00"))
    assert w(script) == "12:25:00"


def test_percentile_rounds_up_when_a_chunk_holds_many_different_delays(play):
    script = play(ps.percentile(1))
    script.batch([{"at": parse("12:00") - second * 1_000_001} for second in range(600)], now="12:00")
    assert parse("12:00") - 599 * 1_000_001 * 1.008 < script.W < parse("12:00") - 599 * 1_000_001


def test_percentile_forgets_what_is_older_than_the_last_hundred_thousand(play, monkeypatch):
    for engine in ("reference", "engine"):
        monkeypatch.setattr(f"penstock.{engine}.watermarks.DELAYS_A_CHUNK", 10)
        monkeypatch.setattr(f"penstock.{engine}.watermarks.REMEMBERED_DELAYS", 100)
    script = play(ps.percentile(1))
    script.batch(at("12:00", *["11:50"] * 99), now="12:00")
    script.batch(at(*["12:05"] * 98))
    assert w(script) == "11:55:00"
    script.batch(at("12:05", "12:05"))  # all of the last hundred came in order
    assert w(script) == "12:05:00"


def test_from_column_is_what_the_source_says(play):
    script = play(ps.from_column("mark"), columns="at timestamp, mark timestamp")
    script.batch(at("12:10", mark="12:01") + at("12:11", mark=None))
    assert w(script) == "12:01:00"
    script.batch(at("12:12", mark="11:00"))
    assert w(script) == "12:01:00"


def test_a_mark_from_the_future_is_quarantined_and_moves_nothing(play):
    script = play(ps.from_column("mark"), columns="at timestamp, mark timestamp")
    script.batch(at("12:10", mark="13:09"), now="12:10")
    assert w(script) == "13:09:00"
    script.batch(at("12:11", mark="13:12"), now="12:11")
    assert w(script) == "13:09:00"
    assert "watermark it carries" in script.quarantined[0].reason


def test_punctuated_follows_the_rows_that_are_marks(play):
    script = play(ps.punctuated("kind = 'mark'"), columns="at timestamp, kind string")
    script.batch(at("12:10", kind="event") + at("12:05", kind="mark") + at("12:20", kind=None))
    assert w(script) == "12:05:00"


def test_by_hand_moves_only_when_it_is_set(play):
    script = play(ps.by_hand())
    script.batch(at("12:10"))
    assert script.W == MIN_TIME
    script.watermark("12:05")
    assert w(script) == "12:05:00"


def test_a_watermark_by_hand_moves_any_rule_forward(play):
    script = play(ps.bounded("2 minutes"))
    script.batch(at("12:10"))
    script.watermark("14:00")
    assert w(script) == "14:00:00"


# partitions


def test_the_watermark_is_the_minimum_over_the_partitions(play):
    script = play(ps.ascending())
    script.batch("""
        @partition  at
        a           12:10
        b           12:04
    """)
    assert w(script) == "12:04:00"
    assert script.partitions()["a"].watermark == parse("12:10")


def test_the_laggard_is_named(play):
    script = play(ps.ascending())
    script.batch([{"@partition": "fast", "at": "12:10"}, {"@partition": "slow", "at": "12:04"}])
    assert script.laggard == "slow"


def test_a_silent_partition_steps_aside_after_idle(play):
    script = play(ps.ascending(idle="1 minute"))
    script.batch([{"@partition": "a", "at": "12:10"}, {"@partition": "b", "at": "12:04"}], now="12:10")
    script.batch(at("12:11"), partition="a", now="12:10:59")
    assert w(script) == "12:04:00"
    script.batch(at("12:11"), partition="a", now="12:11")
    assert w(script) == "12:11:00"
    assert script.partitions()["b"].idle


def test_a_slow_partition_that_speaks_holds_the_watermark(play):
    script = play(ps.ascending(idle="1 minute"))
    for minute in range(10, 20):
        script.batch([{"@partition": "a", "at": f"12:{minute}"}, {"@partition": "b", "at": "12:01"}])
    assert w(script) == "12:01:00"


def test_without_idle_a_silent_partition_is_waited_for(play):
    script = play(ps.ascending(idle=None))
    script.batch([{"@partition": "a", "at": "12:10"}, {"@partition": "b", "at": "12:04"}], now="12:10")
    script.batch(at("12:11"), partition="a", now="23:00")
    assert w(script) == "12:04:00"


def test_a_known_partition_not_yet_read_counts_as_minus_infinity_until_idle(play):
    script = play(ps.ascending(idle="1 minute"), partitions=["a", "b"])
    script.batch(at("12:10"), partition="a", now="12:10")
    assert script.W == MIN_TIME
    script.batch(at("12:11"), partition="a", now="12:11")
    assert w(script) == "12:11:00"


def test_a_partition_that_becomes_known_later_is_silent_from_then_on_and_not_before(play):
    script = play(ps.ascending(idle="1 minute"), partitions=["a"])
    script.batch(at("12:00"), partition="a", now="12:00")
    script.run.batch([], Tick(parse("12:05"), partitions=(("events", "a"), ("events", "b"))))
    assert not script.partitions()["b"].idle
    script.batch(at("12:06"), partition="a", now="12:05:59")
    assert w(script) == "12:00:00"
    script.batch(at("12:07"), partition="a", now="12:06")
    assert w(script) == "12:07:00"


def both(engine, rule):
    web, app = (ps.events("at timestamp", name=name).event_time("at", watermark=rule) for name in ("web", "app"))
    return Script(web.union(app).window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)


def test_a_source_of_which_no_partition_is_known_is_one_that_was_not_yet_read(engine):
    script = both(engine, ps.ascending(idle="1 minute"))
    script.batch([{"@source": "web", "at": "12:00"}], now="12:00")
    assert (script.W, script.laggard) == (MIN_TIME, "app/0")
    script.restart()
    script.batch([{"@source": "web", "at": "12:01"}], now="12:00:59")
    assert script.W == MIN_TIME
    script.batch([{"@source": "web", "at": "12:02"}], now="12:01")
    assert w(script) == "12:02:00"
    script.batch([{"@source": "app", "@partition": "north", "at": "12:03"}], now="12:01")
    assert list(script.partitions()) == ["app/north", "web/0"]  # what stood for the source is gone


def test_a_source_that_never_spoke_does_not_keep_the_others_from_advancing(engine):
    script = both(engine, ps.ascending(idle="1 minute", when_idle="advance"))
    script.batch([{"@source": "web", "at": "12:00"}], now="12:00")
    script.advance("12:01")
    assert w(script) == "12:01:00"
    script.advance("12:05")
    assert w(script) == "12:05:00"


def test_a_partition_that_comes_back_rejoins_without_moving_the_watermark_back(play):
    script = play(ps.ascending(idle="1 minute"))
    script.batch([{"@partition": "a", "at": "12:10"}, {"@partition": "b", "at": "12:04"}], now="12:10")
    script.batch(at("12:12"), partition="a", now="12:12")
    script.batch(at("12:05"), partition="b", now="12:12")
    assert w(script) == "12:12:00"
    script.batch(at("12:20"), partition="a", now="12:12")
    assert w(script) == "12:12:00"  # b holds it again
    assert script.laggard == "b"


def test_a_row_that_is_quarantined_or_filtered_still_breaks_the_silence(engine):
    stream = ps.events("at timestamp, v long").where("v > 0").event_time("at", watermark=ps.ascending(idle="1 minute"))
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"@partition": p, "at": "12:00", "v": 1} for p in "ab"], now="12:00")
    script.batch([{"@partition": "a", "at": "12:30", "v": 1}, {"@partition": "b", "at": "12:30", "v": 0}], now="12:05")
    assert w(script) == "12:00:00"


def test_a_where_before_event_time_says_what_is_reported_one_after_does_not(engine):
    stream = ps.events("at timestamp, v long")
    before = stream.where("v > 0").event_time("at", watermark=ps.ascending())
    after = stream.event_time("at", watermark=ps.ascending()).where("v > 0")
    for made, expected in ((before, "-inf"), (after, "12:00:00")):
        script = Script(made.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
        script.batch([{"at": "12:00", "v": 0}])
        assert (w(script), script.counts.filtered) == (expected, 1)


# max_skew


def test_an_event_from_the_future_is_quarantined_and_moves_nothing(play):
    script = play(ps.ascending(max_skew="1 hour"))
    script.batch(at("12:00", "13:00:00.000001"), now="12:00")
    assert w(script) == "12:00:00"
    assert [row.step for row in script.quarantined] == ["event_time"]


def test_a_bad_clock_moves_the_watermark_by_at_most_max_skew(play):
    script = play(ps.ascending(max_skew="1 hour"))
    script.batch(at("13:00"), now="12:00")
    assert w(script) == "13:00:00"


def test_without_max_skew_the_future_is_believed(play):
    script = play(ps.ascending(max_skew=None))
    script.batch(at("2999-01-01"), now="12:00")
    assert w(script) == "2999-01-01 00:00:00"


# several inputs


def test_the_watermark_of_a_union_is_the_minimum_over_all_inputs(engine):
    web, app = (ps.events("at timestamp", name=name) for name in ("web", "app"))
    both = web.event_time("at", watermark=ps.ascending()).union(app.event_time("at", watermark=ps.bounded("5 minutes")))
    script = Script(both.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"@source": "web", "at": "12:10"}, {"@source": "app", "at": "12:12"}])
    assert w(script) == "12:07:00"
    assert script.laggard == "app/0"
