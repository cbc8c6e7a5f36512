"""Does a script compare what was written with what was shown: types, names, clocks, and a crash in between?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.types.timestamps import parse


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


# ------------------------------------------------------------------------------------------------- times in words


def test_quarantined_rows_say_their_times_in_words(engine: str) -> None:
    script = Script(counted("n long, day date, at timestamp"), engine)
    script.batch([{"n": "x", "at": "13:00"}, {"at": "x"}])
    script.batch([{"n": "y", "day": "2026-05-01", "at": "13:00:00.000001"}])
    script.expect_quarantined(
        {"n": "x", "at": "13:00:00"},
        {"at": "x", "reason": "column 'at'"},
        {"at": "13:00:00.000001", "day": date(2026, 5, 1)},
    )
    script.batch([{"n": "y", "at": "13:00"}])
    with pytest.raises(AssertionError, match="Unmatched output"):
        script.expect_quarantined({"at": "13:00:01"})


def test_a_row_that_was_decoded_before_it_was_refused_says_its_times_in_words(engine: str) -> None:
    stream = ps.events("n long, seen timestamp, at timestamp").event_time("at", watermark=ps.by_hand())
    script = Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
    script.batch([{"n": 1, "seen": "13:00:00.000001"}])
    assert script.quarantined[0].row["seen"] == parse("13:00:00.000001")
    script.expect_quarantined({"seen": "13:00:00.000001", "reason": "is null"})


def test_show_writes_times_and_expect_reads_them(engine: str) -> None:
    stream = ps.events("seen timestamp, day date, at timestamp").event_time("at", watermark=ps.by_hand())
    windowed = stream.key_by("seen", "day").window(ps.tumbling("1 minute"))
    script = Script(windowed.aggregate(newest=ps.max("at"), all=ps.collect("at")), engine)
    script.batch([{"seen": "2026-05-01T09:30", "day": "2026-05-01", "at": "12:00:10"}, {"at": "12:00:20.000001"}])
    script.end()
    table = script.show()
    for cell in ("2026-05-01 09:30:00", "2026-05-01  ", "12:00:10", '["12:00:20.000001"]'):
        assert cell in table
    script.expect(table)


def test_a_table_without_lines_is_read_back_too() -> None:
    script = Script(counted("key string, at timestamp", "key"))
    script.expect(script.show())


# --------------------------------------------------------------------------------------------------------- misuse

STREAM = ps.events("team string, n long, at timestamp").event_time("at", watermark=ps.by_hand())
WINDOWED = STREAM.window(ps.tumbling("1 minute"))
PANES = WINDOWED.aggregate(n=ps.rows())


def anything(value: object) -> Any:
    """A value whose type the checker does not know, as in a test that nobody type-checks."""
    return value


@pytest.mark.parametrize(
    ("misuse", "said", "instead"),
    [
        (lambda s: s.batch(now="noon"), "now is no point in time", 'now="12:00"'),
        (lambda s: s.batch(now=1.5), "now is no point in time: it is 1.5", 'now="12:00"'),
        (lambda s: s.batch(now=True), "now is no point in time", 'now="12:00"'),
        (lambda s: s.batch(now=2**70), "do not fit into 64 bits", 'now="12:00"'),
        (lambda s: s.batch(watermark="25:00"), "watermark is no point in time", 'watermark="12:00"'),
        (lambda s: s.advance(None), "now is no point in time", 'now="12:00"'),
        (lambda s: s.resume("noon"), "now is no point in time", 'now="12:00"'),
        (lambda s: s.end(now="noon"), "now is no point in time", 'now="12:00"'),
        (lambda s: s.watermark([]), "at is no point in time", 'at="12:00"'),
        (lambda s: s.batch(None), "what arrives is None", 'batch([{"team": "a", "n": 1, "at": "12:00"}])'),
        (lambda s: s.batch({"n": 1}), "what arrives is one row", "batch([{"),
        (lambda s: s.batch([None]), "row 1 is None", "batch([{"),
        (lambda s: s.batch([{"n": 1}, ["a", 1]]), "row 2 is ['a', 1]", "batch([{"),
        (lambda s: s.batch("taem"), "'taem' is not a table", "did you mean 'team'?"),
        (lambda s: s.batch([{1: 2}]), "the row has a column 1", "known: at, n, team"),
        (lambda s: s.batch([{"@partiton": "1"}]), "the row says '@partiton'", "did you mean '@partition'?"),
        (lambda s: s.batch("n  @sorce\n1  x"), "the row says '@sorce'", "did you mean '@source'?"),
        (lambda s: s.batch([{"@source": 3}]), "there is no source '3'", "known: events"),
        (lambda s: s.expect(None), "expect was given None", 'write expect({"n": …})'),
        (lambda s: s.expect([{"n": 1}]), "expect was given a list", "write expect(*[{'n': 1}])"),
        (lambda s: s.expect("none"), "'none' is not a table", "write the header"),
        (lambda s: s.expect({"start": "noon"}), "start is no point in time", 'start="12:00"'),
        (lambda s: s.expect_late("x"), "'x' is not a table", "write the header"),
        (lambda s: s.expect_late(3), "expect_late was given 3", "write expect_late({"),
        (lambda s: s.expect_late({"at": "noon"}), "at is no point in time", 'at="12:00"'),
        (lambda s: s.expect_quarantined("x"), "'x' is not a table", "write the header"),
        (lambda s: Script(anything(None)), "None is not a pipeline", "aggregate(n=ps.rows())"),
        (lambda s: Script(anything(WINDOWED)), "has no aggregate yet", "write Script(windowed.aggregate(n=ps.rows()))"),
        (lambda s: Script(anything(STREAM)), "has no aggregate yet", "aggregate(n=ps.rows())"),
        (lambda s: Script(PANES, anything(None)), "the engine is None", 'Script(panes, "reference")'),
        (lambda s: Script(PANES, "refrence"), "there is no engine 'refrence'", "did you mean 'reference'?"),
        (lambda s: Script(PANES, partitions="ab"), "partitions is 'ab'", 'write partitions=["ab"]'),
        (lambda s: Script(PANES, partitions=anything([1])), "partitions is [1]", 'write partitions=["0"]'),
        (lambda s: Script(PANES, partitions=anything(None)), "partitions is None", 'write partitions=["0"]'),
    ],
)  # fmt: skip
def test_misuse_is_told_in_three_parts(misuse: Callable[[Any], object], said: str, instead: str) -> None:
    script = Script(PANES)
    script.batch([{"n": 1, "at": "12:00"}])
    script.batch([{"n": 1, "at": "11:00"}], watermark="12:01")
    with pytest.raises(ps.CaseError) as refused:
        misuse(script)
    assert said in refused.value.what
    assert refused.value.why
    assert instead in refused.value.instead


def test_an_end_that_was_refused_is_no_end() -> None:
    script = Script(PANES)
    with pytest.raises(ps.CaseError):
        script.end(now="noon")
    script.batch([{"n": 1, "at": "12:00"}])
    assert script.run.now == parse("12:00")


def test_rows_may_come_from_a_generator(engine: str) -> None:
    script = Script(PANES, engine)
    script.batch(anything({"n": n, "at": "12:00"} for n in range(3)))
    assert script.counts.read == 3


@pytest.mark.parametrize("played", [True, False])
def test_a_name_that_nothing_has_is_told(played: bool) -> None:
    script = Script(PANES)
    if played:
        script.batch([{"n": 1, "at": "12:00"}])
        script.batch([{"n": 1, "at": "11:00"}, {"n": "x"}], watermark="12:01")
    for expect, key, what, meant in (
        (script.expect, "timin", "pane", "timing"),
        (script.expect_late, "lateby", "late row", "late_by"),
        (script.expect_late, "tem", "late row", "team"),
        (script.expect_quarantined, "reson", "quarantined row", "reason"),
    ):
        with pytest.raises(AssertionError) as told:
            expect({key: "x"})
        assert f"no {what} has a fact {key!r}: did you mean {meant!r}?" in str(told.value)


def test_late_rows_may_be_a_table(engine: str) -> None:
    script = Script(PANES, engine)
    script.batch("team  n  at\nred   1  12:00", watermark="12:01")
    script.expect_late("n  at        late_by\n1  12:00:00  1 minute")


def test_a_batch_that_is_refused_has_read_nothing() -> None:
    script = Script(PANES)
    with pytest.raises(ps.CaseError):
        script.batch([{"n": "x"}, {"m": 1}])
    script.batch([{"n": "x"}])
    script.expect_quarantined({"offset": 0})
