"""Rows before windows: filter, project, map, unite, group; a row that cannot be used is quarantined with the reason."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

import penstock as ps
from penstock.diagnostics.user_functions import message_of
from penstock.testing import Script
from penstock.types.timestamps import parse

EVENTS = ps.events("at timestamp, v long, k string")


def timed(stream):
    return stream.event_time("at", watermark=ps.by_hand())


@pytest.fixture
def play(engine):
    """A script that collects the column v of a stream."""

    def made(stream, *keys, **aggregates):
        windowed = stream.key_by(*keys).window(ps.tumbling("1 day"))
        return Script(windowed.aggregate(**(aggregates or {"got": ps.collect("v")})), engine)

    return made


def finish(script, values, **batch):
    script.batch([{"at": "12:00", "v": value, "k": "k"} for value in values], **batch)
    script.end()
    return script.panes[0].values["got"] if script.panes else None


def test_where_keeps_rows_for_which_it_is_true_and_counts_the_rest(play):
    script = play(timed(EVENTS).where("v > 1"))
    assert finish(script, [1, 2, None, 3]) == [2, 3]
    assert script.counts.filtered == 2


@pytest.mark.parametrize("predicate", ["v > 1", ps.col("v") > 1, lambda row: row["v"] > 1], ids=["sql", "col", "def"])
def test_where_takes_sql_a_column_expression_or_a_function(play, predicate):
    assert finish(play(timed(EVENTS).where(predicate)), [1, 2, 3]) == [2, 3]
    assert finish(play(timed(EVENTS.where(predicate))), [1, 2, 3]) == [2, 3]


def test_select_leaves_these_columns_and_no_others(play):
    stream = timed(EVENTS).select("at", v="v * 2")
    assert stream.schema.names == ("at", "v")
    assert finish(play(stream), [1, 2]) == [2, 4]


def test_with_columns_adds_and_replaces(play):
    stream = timed(EVENTS).with_columns(v="v + 1", w="v * 10")
    assert stream.schema.names == ("at", "v", "k", "w")
    script = play(stream, got=ps.collect("w"))
    assert finish(script, [1]) == [10]  # all see the row as it was before the step


def test_event_time_may_be_a_computed_column(play):
    stream = ps.events("day string, v long").with_columns(at="cast(concat(day, ' 12:00:00') as timestamp)")
    script = play(timed(stream))
    script.batch([{"day": "1970-01-01", "v": 1}], now="12:00")
    script.end()
    script.expect({"got": [1], "start": "00:00"})


def test_map_is_a_function_of_a_row_in_which_times_are_datetimes(play):
    seen = []
    stream = timed(EVENTS).map(lambda row: seen.append(row["at"]) or {**row, "v": row["v"] * 2})
    assert finish(play(stream), [1, 2]) == [2, 4]
    assert seen[0] == datetime(1970, 1, 1, 12, tzinfo=UTC)


def test_map_declares_the_columns_it_changes(play):
    stream = timed(EVENTS).map(lambda row: {"v": str(row["v"])}, schema="v string")
    assert finish(play(stream), [1]) == ["1"]


@pytest.mark.parametrize(("function", "reason"), [
    (lambda row: 1 / 0, "ZeroDivisionError: division by zero"), (lambda row: 7, "map gave 7, which is not a row"),
    (lambda row: {"x": 1}, "map gave the column 'x', which its schema does not have"),
    (lambda row: {**row, "v": "many"}, "map gave column 'v': 'many' is not an integer"),
], ids=["throws", "no row", "unknown column", "wrong type"])  # fmt: skip
def test_row_5_map_that_fails_on_a_row_quarantines_it_with_the_reason(play, function, reason):
    script = play(timed(EVENTS).map(lambda row: function(row) if row["v"] == 2 else row))
    assert finish(script, [1, 2, 3]) == [1, 3]
    (bad,) = script.quarantined
    assert (bad.step, message_of(bad.reason), bad.row["v"]) == ("map", reason, 2)
    assert re.search(r" · in a lambda \(test_row_steps\.py, line \d+\) · with \{.*'v': 2", bad.reason)


def test_an_expression_that_fails_on_a_row_quarantines_it_as_it_came(play):
    script = play(timed(EVENTS).with_columns(v="v * 2").with_columns(v="12 / (v - 4)"), got=ps.count("v"))
    assert finish(script, [1, 2, 3]) == 2
    (bad,) = script.quarantined
    assert (bad.step, bad.reason) == ("with_columns", "division by zero in 12 / (v - 4)")
    assert (bad.row["v"], bad.partition, bad.offset) == (2, "0", 1)


def test_where_that_fails_on_a_row_quarantines_it(play):
    script = play(timed(EVENTS).where(lambda row: 12 / row["v"] > 1))
    assert finish(script, [0, 1]) == [1]
    assert script.quarantined[0].step == "where"


def double(batch):
    pa = pytest.importorskip("pyarrow")
    index = batch.schema.get_field_index("v")
    return batch.set_column(index, "v", pa.compute.multiply(batch["v"], 2))


def test_map_batches_is_a_function_of_an_arrow_batch(play):
    pytest.importorskip("pyarrow.compute")
    assert finish(play(timed(EVENTS).map_batches(double)), [1, 2]) == [2, 4]


def test_map_batches_that_throws_is_tried_again_row_by_row(play):
    pytest.importorskip("pyarrow.compute")

    def picky(batch):
        if 2 in batch["v"].to_pylist():
            raise ValueError("no twos")
        return double(batch)

    script = play(timed(EVENTS).map_batches(picky))
    assert finish(script, [1, 2, 3]) == [2, 6]
    (bad,) = script.quarantined
    assert (bad.step, message_of(bad.reason)) == ("map_batches", "ValueError: no twos")
    assert re.search(r" · in .* \(test_row_steps\.py, line \d+\) · with \{.*'v': 2", bad.reason)


def test_map_batches_that_changes_the_number_of_rows_is_played_row_by_row_and_counted(play):
    pa = pytest.importorskip("pyarrow")

    def spread(batch):
        rows = [row for row in batch.to_pylist() for _ in range(row["v"])]
        return pa.RecordBatch.from_pylist(rows, schema=batch.schema)

    script = play(timed(EVENTS).map_batches(spread))
    assert finish(script, [0, 1, 3]) == [1, 3, 3, 3]
    assert (script.counts.read, script.counts.added, script.counts.dropped) == (3, 2, 1)


def test_map_batches_that_gives_another_schema_quarantines_the_rows(play):
    pytest.importorskip("pyarrow")
    script = play(timed(EVENTS).map_batches(lambda batch: batch.select(["v"])))
    finish(script, [1])
    assert "map_batches gave the columns ['v']" in script.quarantined[0].reason


def test_union_is_the_rows_of_all(play):
    web, app = (ps.events("at timestamp, v long", name=name) for name in ("web", "app"))
    script = play(timed(web.where("v > 0").union(app)))
    script.batch([{"@source": source, "at": "12:00", "v": v} for source in ("web", "app") for v in (0, 1)])
    script.end()
    script.expect({"got": [0, 1, 1]})


def test_union_steps_after_it_are_for_all(play):
    web, app = (ps.events("at timestamp, v long", name=name) for name in ("web", "app"))
    script = play(timed(web).union(timed(app)).with_columns(v="v * 2"))
    script.batch([{"@source": source, "at": "12:00", "v": 1} for source in ("web", "app")])
    script.end()
    script.expect({"got": [2, 2]})


def test_without_key_by_all_rows_are_together(play):
    script = play(timed(EVENTS))
    finish(script, [1, 2])
    assert script.panes[0].key == ()


def test_key_by_several_columns_and_null_is_a_group_of_its_own(play):
    script = play(timed(EVENTS), "k", "v", got=ps.rows())
    script.batch([{"at": "12:00", "k": k, "v": v} for k, v in (("a", 1), ("a", None), (None, None), ("a", None))])
    script.end()
    script.expect({"k": "a", "v": 1, "got": 1}, {"k": "a", "v": None, "got": 2}, {"k": None, "v": None, "got": 1})


def test_a_column_of_the_row_may_have_any_name(play):
    stream = timed(ps.events("at timestamp, v long, window_start string, op long, pane_index long")).where("op = 1")
    script = play(stream)
    script.batch([{"at": "12:00", "v": 1, "window_start": "x", "op": 1, "pane_index": 3}])
    script.end()
    script.expect({"got": [1]})


def test_a_row_that_is_not_of_the_schema_is_quarantined_by_decoding(play):
    script = play(timed(EVENTS))
    assert finish(script, [1, "x", 1.5, True, 2**63]) == [1]
    assert {row.step for row in script.quarantined} == {"decode"}
    assert script.quarantined[0].reason == "column 'v': 'x' is not an integer"


def test_max_bad_rows_stops_the_run(play):
    stream = timed(ps.events("at timestamp, v long, k string", max_bad=1))
    script = play(stream)
    script.batch([{"at": None, "v": 1}])
    with pytest.raises(ps.TooManyBadRows, match="2 of 2 rows of events were quarantined") as error:
        script.batch([{"at": None, "v": 1}])
    assert "event time is null" in error.value.why


def test_max_bad_percent_is_looked_at_from_a_hundred_rows_on(play):
    stream = timed(ps.events("at timestamp, v long, k string", max_bad="1%"))
    script = play(stream)
    script.batch([{"at": None, "v": 1}] * 99)
    with pytest.raises(ps.TooManyBadRows, match="1% of the rows"):
        script.batch([{"at": parse("12:00"), "v": 1}])


def test_every_operand_of_an_expression_is_evaluated(play):
    script = play(timed(EVENTS).with_columns(v="case when v = 0 then 0 else 10 / v end"), got=ps.count("v"))
    assert finish(script, [0, 5]) == 1
    assert script.quarantined[0].reason == "division by zero in 10 / v"


def test_nan_in_an_expression_compares_as_ieee(engine):
    stream = ps.events("at timestamp, x double").event_time("at", watermark=ps.by_hand()).where("x = x")
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00", "x": float("nan")}, {"at": "12:00", "x": 1.0}])
    assert script.counts.filtered == 1
