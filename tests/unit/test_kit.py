"""Does a script compare what was written with what was shown: types, names, clocks, and a crash in between?"""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.instant import parse
from penstock.testing import Script


def counted(columns: str, *keys: str, lateness: str = "0") -> ps.Panes:
    stream = ps.events(columns).event_time("at", watermark=ps.by_hand()).key_by(*keys)
    return stream.window(ps.tumbling("1 minute"), lateness=lateness).accumulating().aggregate(n=ps.rows())


def test_a_table_of_panes_is_read_by_the_types_of_its_columns(engine: str) -> None:
    script = Script(counted("key string, at timestamp", "key"), engine)
    script.batch([{"key": "42", "at": "12:00"}, {"key": "true", "at": "12:00"}, {"at": "12:00"}])
    script.end()
    script.expect("key   n\n42    1\ntrue  1\nnull  1")


def test_what_show_writes_expect_reads(engine: str) -> None:
    script = Script(counted("key string, at timestamp", "key"), engine)
    script.batch([{"key": "42", "at": "12:00"}, {"key": "a b", "at": "12:00"}])
    script.end()
    script.expect(script.show())


def test_a_late_row_may_have_columns_that_panes_have_too(engine: str) -> None:
    script = Script(counted("op string, start string, at timestamp"), engine)
    script.watermark("12:01")
    script.batch([{"op": "insert", "start": "here", "at": "12:00"}])
    script.expect_late({"op": "insert", "start": "here", "at": "12:00"})
    script.batch([{"op": "insert", "at": "12:00"}])
    script.expect_late({"at": "12:00"})


def test_times_dates_and_decimals_are_expected_as_they_are_written(engine: str) -> None:
    stream = ps.events("day date, price decimal(9,2), at timestamp").event_time("at", watermark=ps.by_hand())
    newest = (
        stream.key_by("day")
        .window(ps.tumbling("1 minute"))
        .aggregate(newest=ps.max("at"), all=ps.collect("at"), price=ps.max("price"))
    )
    script = Script(newest, engine)
    script.batch([{"day": "2026-05-01", "price": "1.10", "at": "12:00:10"}, {"day": "2026-05-01", "at": "12:00:20"}])
    script.end()
    script.expect(
        {"day": "2026-05-01", "newest": "12:00:20", "all": ["12:00:10", "12:00:20"], "price": "1.10"},
    )


def test_a_withdrawal_is_not_taken_for_a_pane(engine: str) -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.by_hand())
    windowed = stream.window(ps.tumbling("1 minute")).trigger(ps.repeat(ps.count(1))).retracting()
    script = Script(windowed.aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00"}])
    script.expect({"n": 1})
    script.batch([{"at": "12:00"}])
    with pytest.raises(AssertionError, match="Unmatched output"):
        script.expect({"n": 1}, {"n": 2})


def test_both_what_is_missing_and_what_is_too_much_is_told() -> None:
    script = Script(counted("at timestamp"))
    script.batch([{"at": "12:00"}])
    script.end()
    with pytest.raises(AssertionError, match=r"Unmatched output.*Unexpected output"):
        script.expect({"n": 2})


def test_each_expectation_finds_a_pane_of_its_own(engine: str) -> None:
    script = Script(counted("key string, at timestamp", "key"), engine)
    script.batch([{"key": "a", "at": "12:00"}, {"key": "b", "at": "12:00"}])
    script.end()
    script.expect({"n": 1}, {"key": "a"})


def test_many_rows_that_are_alike_are_told_apart() -> None:
    script = Script(counted("at timestamp"))
    script.watermark("12:01")
    script.batch([{"at": "12:00"}] * 1_200)
    script.expect_late(*[{"at": "12:00"}] * 1_200)


def test_bad_rows_are_expected_by_a_part_of_their_reason(engine: str) -> None:
    script = Script(counted("n long, at timestamp"), engine)
    script.batch([{"n": "x", "at": "12:00"}, {"n": 1}])
    script.expect_quarantined({"n": "x", "step": "decode", "reason": "not an integer"}, {"reason": "is null"})
    with pytest.raises(AssertionError, match="Unmatched output"):
        script.expect_quarantined({"n": 3})


def test_rows_after_the_end_are_refused(engine: str) -> None:
    script = Script(ps.events("at timestamp").event_time("at", watermark=ps.ascending())
                    .window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)  # fmt: skip
    script.batch([{"at": "12:00"}])
    script.end()
    with pytest.raises(ps.CaseError, match="rows after the end"):
        script.batch([{"at": "12:01"}])


def test_a_column_named_like_a_fact_is_meant_by_its_name(engine: str) -> None:
    script = Script(ps.events("at timestamp").event_time("at", watermark=ps.ascending())
                    .window(ps.tumbling("1 minute")).aggregate(index=ps.rows()), engine)  # fmt: skip
    script.batch([{"at": "12:00"}, {"at": "12:00"}])
    script.end()
    script.expect({"index": 2, "pane_index": 0, "pane_timing": "on_time", "pane_final": True})


def test_a_resumed_clock_does_not_follow_the_events_any_more(engine: str) -> None:
    script = Script(counted("at timestamp"), engine)
    script.resume("12:00")
    script.batch([{"at": "12:30"}])
    assert script.run.now == parse("12:00")


def test_a_restart_leaves_nothing_but_the_snapshot(engine: str) -> None:
    script = Script(counted("at timestamp"), engine)
    script.batch([{"at": "12:00"}])
    before = script.run
    script.restart()
    assert script.run is not before
    script.end()
    script.expect({"n": 1})
