"""What is said to names of other libraries, to misspelt ones, and to calls that do not fit: the line to write."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.api.pipeline import Branch, Output, Pipeline
from penstock.diagnostics import other_libraries as elsewhere
from penstock.diagnostics.unknown_names import UnknownName, WrongCall
from penstock.errors import PenstockError, PlanError
from penstock.plan.tables import Table
from penstock.runtime.process_context import Context

SCORES = ps.events("team string, points long, at timestamp")
TIMED = SCORES.event_time("at", watermark=ps.bounded("5 seconds"))
WINDOWED = TIMED.key_by("team").window(ps.tumbling("5 minutes"))
TOTALS = WINDOWED.aggregate(points=ps.sum("points"))
OUTPUT = TOTALS.write(ps.console())
PIPELINE = ps.pipeline("totals", OUTPUT)
ROWS = TIMED.dedup("team", within="1 hour")
TABLE = ps.table([{"team": "red"}], schema="team string")
ANY = (SCORES, WINDOWED, TOTALS, TOTALS.late, OUTPUT, PIPELINE, ROWS, TABLE, ps.col("points"), ps.pattern("a"),
       ps.count(3), ps.tumbling("1 hour"), ps.rows(), Context({}, False))  # fmt: skip


@pytest.mark.parametrize(("where", "name", "instead"), [
    (SCORES, "filter", '.where("points > 10")'),
    (SCORES, "withColumn", '.with_columns(double="points * 2")'),
    (SCORES, "withColumns", ".with_columns"),
    (SCORES, "withWatermark", '.event_time("at", watermark='),
    (SCORES, "assignTimestampsAndWatermarks", '.event_time("at", watermark='),
    (SCORES, "agg", ".aggregate(points="),
    (WINDOWED, "agg", ".aggregate(points="),
    (SCORES, "groupBy", '.key_by("team")'),
    (SCORES, "groupby", '.key_by("team")'),
    (SCORES, "keyBy", ".key_by"),
    (SCORES, "writeStream", ".write(ps.sqlite("),
    (SCORES, "sinkTo", ".write("),
    (SCORES, "sink_to", ".write("),
    (SCORES, "awaitTermination", ".run(checkpoint="),
    (TOTALS, "start", ".run(checkpoint="),
    (SCORES, "foreachBatch", "ps.foreach_batch(function)"),
    (SCORES, "dropDuplicatesWithinWatermark", ".dedup("),
    (SCORES, "distinct", ".dedup("),
    (SCORES, "orderBy", ".top(10"),
    (SCORES, "limit", "ps.console()"),
    (SCORES, "show", "ps.console()"),
    (SCORES, "collect", "ps.memory("),
    (SCORES, "toPandas", "ps.memory("),
    (SCORES, "alias", ".select("),
    (SCORES, "drop", ".select("),
    (SCORES, "windowAll", ".window(ps.tumbling("),
    (SCORES, "tumbling_window", ".window(ps.tumbling("),
    (WINDOWED, "final", "ps.at_watermark()"),
    (WINDOWED, "where", ".where(…) before .window(…)"),
    (WINDOWED, "write", ".write("),
    (TOTALS, "where", ".stream.where(…)"),
    (TOTALS, "window", ".stream.window(…)"),
    (ROWS, "filter", ".where("),
    (SCORES, "points", 'ps.col("points")'),
    (SCORES, "wheer", "did you mean 'where'?"),
    (TOTALS, "explian", "did you mean 'explain'?"),
    (OUTPUT, "run", "ps.pipeline("),
    (PIPELINE, "awaitTermination", ".run(checkpoint="),
    (PIPELINE, "wait", "pipeline.start("),
    (ps.col("a"), "isNull", ".is_null()"),
    (ps.col("a"), "alias", ".with_columns(double="),
    (ps.pattern("a"), "followedBy", ".then("),
    (TABLE, "join", ".join_table("),
    (ps.count(3), "orFinally", "a | b"),
    (ps.rows(), "alias", ".aggregate(points="),
    (ps.tumbling("1 hour"), "grace", "lateness="),
    (Context({}, False), "collect", "context.emit("),
    (ps, "avg", "ps.mean("),
    (ps, "tumbling_window", "ps.tumbling("),
    (ps, "tumblin", "did you mean 'ps.tumbling'?"),
    (ps, "gameScores", "ps.game_scores"),
    (ps, "count_distinct", "ps.distinct("),
])  # fmt: skip
def test_a_name_that_is_not_there_is_answered_with_the_line_to_write(where: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(where, name)
    error = caught.value
    assert isinstance(error, UnknownName)
    assert name in error.what
    assert error.why
    assert instead in error.instead


@pytest.mark.parametrize("thing", ANY, ids=lambda thing: type(thing).__name__)
def test_what_asks_for_names_on_its_own_is_not_disturbed(thing: Any) -> None:
    assert not hasattr(thing, "filter_nothing_of_the_kind")
    assert not hasattr(thing, "_repr_html_")
    assert getattr(thing, "__array__", None) is None
    assert type(copy.copy(thing)) is type(thing)
    assert str(type(thing)) in repr(type(thing))


@pytest.mark.parametrize("thing", [SCORES, TOTALS, PIPELINE, ps.col("points"), ps.pattern("a"), ps.count(3)])
def test_it_can_be_pickled_as_before(thing: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing)
    assert repr(copy.deepcopy(thing)) == repr(thing)


def test_a_refusal_can_be_pickled() -> None:
    for kind in (UnknownName, WrongCall):
        error = pickle.loads(pickle.dumps(kind("what", "why", "instead")))
        assert (error.what, error.why, error.instead) == ("what", "why", "instead")


def test_a_name_of_the_package_that_is_not_there_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="cannot import name"):
        exec("from penstock import nothing_of_the_kind")


NAMES = {name for kind in (ps.Stream, ps.Rows, ps.Windowed, ps.Panes, Branch, Output, Pipeline, ps.Pattern, ps.Trigger,
                           ps.Aggregate, type(ps.col("a")), Table, Context)
         for name in dir(kind)} | {"rows", "stop", "wait", "running", "status", "run", "start"}  # fmt: skip
LINES = sorted({
    line for table in [*(table for _, table in elsewhere.KINDS.values()), elsewhere.PACKAGE, elsewhere.CALLS]
    for line in table.values()
})  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_what_is_proposed_exists(line: str) -> None:
    """An oracle of names: whatever a proposed line calls is a public name of the package or of a class."""
    for name in re.findall(r"\bps\.([A-Za-z_]+)", line):
        assert hasattr(ps, name), line
    code = re.sub(r'"[^"]*"', '""', line)
    for name in re.findall(r"(?<!ps)\.([a-z_]+)\(", code):
        assert name in NAMES, line


def test_no_name_is_answered_that_is_there() -> None:
    """An entry of the table for a name that the class has would never be read."""
    for thing in (thing for thing in ANY if thing is not ROWS):  # which has the table of streams
        kind = next(base.__name__ for base in type(thing).__mro__ if base.__name__ in elsewhere.KINDS)
        assert not {name for name in dir(thing) if name in elsewhere.KINDS[kind][1]}, kind


class Doubling(ps.KeyedFunction):
    output = "team string"

    def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
        context.emit(team=key)


@pytest.mark.parametrize(("call", "instead"), [
    (lambda: WINDOWED.aggregate(ps.rows()), "plays=ps.rows()"),
    (lambda: WINDOWED.aggregate({"n": ps.rows()}), "plays=ps.rows()"),
    (lambda: TIMED.aggregate(ps.rows()), "plays=ps.rows()"),
    (lambda: TIMED.with_columns("points * 2"), '.with_columns(double="points * 2")'),
    (lambda: TIMED.with_columns({"double": "points * 2"}), '.with_columns(double="points * 2")'),
    (lambda: TIMED.split("points > 3"), ".split(high="),
    (lambda: TIMED.where(), ".where("),
    (lambda: TIMED.where("points > 1", "points < 5"), "points > 10 and"),
    (lambda: TIMED.where(points=3), ".where("),
    (lambda: TIMED.map(lambda row: row, "team string"), "schema="),
    (lambda: SCORES.event_time("at", ps.bounded("5 seconds")), "watermark=ps.bounded("),
    (lambda: TIMED.window(ps.tumbling("5 minutes"), "1 hour"), 'lateness="1 hour"'),
    (lambda: TIMED.window("at", "5 minutes"), "ps.tumbling("),
    (lambda: WINDOWED.trigger(processingTime="1 second"), "batch_every="),
    (lambda: WINDOWED.accumulating(True), ".accumulating()"),
    (lambda: TOTALS.write(), ".write(ps.sqlite("),
    (lambda: TOTALS.write("parquet", "path"), ".write(ps.sqlite("),
    (lambda: TOTALS.late.write(), ".write(ps.sqlite("),
    (lambda: TIMED.top(3, "points"), 'by="points"'),
    (lambda: TIMED.process(Doubling(), True), ".process("),
    (lambda: PIPELINE.run("checkpoints/totals"), "checkpoint="),
    (lambda: PIPELINE.run(), "checkpoint="),
    (lambda: ps.tumbling("at", "5 minutes"), "ps.tumbling("),
    (lambda: ps.calendar("day", "Europe/Berlin"), 'zone="Europe/Berlin"'),
    (lambda: ps.at_watermark(ps.count(3)), "early="),
    (lambda: ps.rows("points"), 'ps.count("points")'),
    (lambda: ps.sum(), 'ps.sum("points")'),
    (lambda: ps.sqlite("answers.db"), 'table="totals"'),
    (lambda: ps.sqlite("answers.db", "totals"), 'table="totals"'),
    (lambda: ps.kafka("scores"), "servers="),
    (lambda: ps.directory("scores/"), "schema="),
    (lambda: ps.pipeline("totals", OUTPUT, checkpoint="here"), "run(checkpoint="),
    (lambda: ps.count(3).then(), ".then(other)"),
    (lambda: ps.approx_quantile("points"), "ps.approx_quantile(column, q)"),
    (lambda: ps.value(), "ps.value(type)"),
])  # fmt: skip
def test_a_call_that_does_not_fit_is_answered_with_the_line_to_write(call: Callable[[], Any], instead: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    error = caught.value
    assert isinstance(error, WrongCall)
    assert "it takes: " in error.why
    assert instead in error.instead


@pytest.mark.parametrize("use", [
    lambda: SCORES["team"], lambda: TOTALS["points"], lambda: list(iter(SCORES)), lambda: ps.col("points")["x"],
])  # fmt: skip
def test_rows_are_not_in_hand_while_a_pipeline_is_written(use: Callable[[], Any]) -> None:
    with pytest.raises(WrongCall, match="has none in hand"):
        use()


def test_an_error_from_within_is_left_as_it_is() -> None:
    class Broken:
        def __fspath__(self) -> str:
            raise TypeError("from within")

    with pytest.raises(TypeError, match="from within") as caught:
        ps.sqlite(Broken(), table="t")  # type: ignore[arg-type]
    assert not isinstance(caught.value, PenstockError)


def test_functions_say_of_themselves_what_they_said() -> None:
    assert list(inspect.signature(ps.sliding).parameters) == ["size", "every", "offset"]
    assert list(inspect.signature(ps.Stream.window).parameters) == ["self", "rule", "lateness"]
    assert ps.tumbling.__doc__
    assert Path(inspect.getfile(inspect.unwrap(ps.tumbling))).name == "windows.py"


@pytest.mark.parametrize("call", [
    lambda: ps.sqlite(3, table="t"), lambda: ps.duckdb(3, table="t"), lambda: ps.files(3),
    lambda: ps.directory(["a"], schema="a long"), lambda: ps.secret(3), lambda: ps.col("a").is_in(3),
    lambda: ps.kafka("t", servers="h:1", schema="a long", settings=3),
    lambda: ps.to_kafka("t", servers="h:1", settings=3),
])  # fmt: skip
def test_a_value_of_another_type_is_refused_in_three_parts(call: Callable[[], Any]) -> None:
    with pytest.raises(PlanError) as caught:
        call()
    assert caught.value.what
    assert caught.value.why
    assert caught.value.instead


@pytest.mark.parametrize(("wrong", "said"), [
    (TOTALS, "what comes of windows"), (TIMED, "a stream"), (WINDOWED, "a stream in windows"),
    (None, "None"), ("answers.db", "'answers.db'"),
])  # fmt: skip
def test_what_is_no_output_or_no_sink_is_called_by_what_it_is(wrong: Any, said: str) -> None:
    """Whoever forgets `.write` sees one line, not all that a stream is made of."""
    with pytest.raises(PlanError, match=f"^{said} is not an output\n"):
        ps.pipeline("totals", wrong)
    with pytest.raises(PlanError, match=f"^{said} is not a sink\n"):
        TOTALS.write(wrong)
