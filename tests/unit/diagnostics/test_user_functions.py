"""What a reason says of a user's function that failed: its name, file and line, the value; no secret, no address."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.sink import Batch
from penstock.connectors.sink_errors import SinkError
from penstock.diagnostics.user_functions import failure, message_of, shown
from penstock.errors import DataError
from penstock.testing import Script

HERE = "test_user_functions.py"
ROWS = "at timestamp, v long, token string, note string"


def line_of(function: Any, offset: int = 1) -> int:
    return int(function.__code__.co_firstlineno) + offset


def failing(function: Any, *given: Any) -> str:
    """What is said of a function that fails."""
    try:
        function(*given)
    except Exception as error:
        return failure(error, function, given[0])
    raise AssertionError("it did not fail")


def in_a_named_function(row: dict[str, Any]) -> Any:
    return row["nothing"]


def through_a_library(row: dict[str, Any]) -> Any:
    return json.loads(row["note"])


class Method:
    def of(self, row: dict[str, Any]) -> Any:
        return row["nothing"]

    def __call__(self, row: dict[str, Any]) -> Any:
        return row["nothing"]


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def around(row: dict[str, Any]) -> Any:
        return function(row)

    return around


def two(first: int, row: dict[str, Any]) -> Any:
    return row["nothing"]


@pytest.mark.parametrize(("function", "place"), [
    (in_a_named_function, f"in_a_named_function ({HERE}, line {line_of(in_a_named_function)})"),
    (through_a_library, f"through_a_library ({HERE}, line {line_of(through_a_library)})"),
    (lambda row: row["nothing"], "a lambda ("),
    (Method().of, f"Method.of ({HERE}, line {line_of(Method.of)})"),
    (Method(), f"Method.__call__ ({HERE}, line {line_of(Method.__call__)})"),
    (functools.partial(two, 1), f"two ({HERE}, line {line_of(two)})"),
    (decorated(in_a_named_function), f"in_a_named_function ({HERE}, line {line_of(in_a_named_function)})"),
    (lambda row: [value / 0 for value in (1, 2)], "a lambda ("),
], ids=["function", "library", "lambda", "method", "callable", "partial", "decorated", "comprehension"])  # fmt: skip
def test_the_function_is_named_with_its_line(function: Any, place: str) -> None:
    assert f" · in {place}" in failing(function, {"v": 1, "note": "{"})


def test_what_a_function_gave_is_laid_at_its_own_door() -> None:
    """No line of the user's has failed: the line where the function begins is named."""

    def gives(row: dict[str, Any]) -> int:
        return 7

    script = Script(counted(stream().map(gives)))
    script.batch([{"at": "1970-01-01T12:00:00Z", "v": 3}])
    (bad,) = script.quarantined
    assert bad.reason.startswith(
        f"map gave 7, which is not a row · in gives ({HERE}, line {line_of(gives, 0)}) · with {{"
    )


def test_a_cell_of_a_notebook_and_text_that_was_compiled_are_named() -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("def cell(row):\n    return row['x']\n", "<ipython-input-3-0a1b>", "exec"), space)
    assert " · in cell (<ipython-input-3-0a1b>, line 2)" in failing(space["cell"], {"v": 1})
    exec("def typed(row):\n    return row['x']\n", space)
    assert " · in typed (<string>, line " in failing(space["typed"], {"v": 1})


def test_a_function_without_code_is_named() -> None:
    assert failure(ValueError("no"), int, "x") == "ValueError: no · in int · with 'x'"


@pytest.mark.parametrize("value", [
    {"note": "x" * 10_000}, {"v": b"\0" * 10_000}, {f"c{n}": n for n in range(500)}, [[[[[1]]]]], "x" * 10_000,
    {"v": 10**5_000},
], ids=["text", "bytes", "columns", "nested", "alone", "digits"])  # fmt: skip
def test_a_value_is_short_whatever_it_is(value: Any) -> None:
    assert len(shown(value)) <= 400
    assert "\n" not in shown(value)


def test_a_message_is_short_one_line_and_text() -> None:
    def talks(row: dict[str, Any]) -> None:
        raise ValueError("a\n" + "b" * 10_000 + "\ud800")

    reason = failing(talks, {"v": 1})
    assert message_of(reason).startswith("ValueError: a b")
    assert len(reason) < 600
    reason.encode()


def test_an_error_that_cannot_say_what_it_is_is_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def silent(row: dict[str, Any]) -> None:
        raise Mute

    assert failing(silent, {"v": 1}).startswith("Mute:")


def test_a_reason_is_the_same_in_another_process() -> None:
    class Thing:
        pass

    def strange(row: dict[str, Any]) -> None:
        raise KeyError(Thing())

    first, second = failing(strange, {"v": Thing()}), failing(strange, {"v": Thing()})
    assert first == second
    assert "0x" not in first


@pytest.mark.parametrize("name", ["password", "token", "api_key", "db_credential", "Passwd"])
def test_a_secret_stands_in_no_reason(name: str) -> None:
    secret = "hunter2" * 60

    def tells(row: dict[str, Any]) -> None:
        raise ValueError(f"no such user: {row[name]}")

    reason = failing(tells, {name: secret, "url": "postgres://me:hunter2@host/db"})
    assert "hunter2" not in reason
    assert "***" in message_of(reason)
    assert f"'{name}': ***" in reason


@pytest.mark.parametrize("reads", [int, float, lambda token: {}[token]], ids=["cut short", "quoted", "a key"])
def test_a_secret_of_many_lines_stands_in_no_message_that_quotes_it(reads: Any) -> None:
    secret = "-----BEGIN KEY-----\n" + "hunter2'\"" * 60 + "\n-----END KEY-----"
    reason = failing(lambda row: reads(row["token"]), {"token": secret})
    assert "hunter2" not in reason
    assert "KEY" not in reason.partition(" · ")[0].removeprefix("KeyError")
    assert "***" in message_of(reason)


def test_an_object_that_has_every_name_is_looked_into_for_an_end() -> None:
    class Everything:
        def __getattr__(self, name: str) -> Any:
            return Everything()

        def __call__(self, row: dict[str, Any]) -> Any:
            return row["nothing"]

    assert f".__call__ ({HERE}, line " in failing(Everything(), {"v": 1})


# Every function that a user gives, on both engines --------------------------------------------------------------------


def stream(columns: str = ROWS) -> Any:
    return ps.events(columns).event_time("at", watermark=ps.bounded("1 minute"))


def fails_on_row(row: dict[str, Any], *_: Any) -> Any:
    raise ValueError("no")


def fails_on_batch(batch: Any) -> Any:
    raise ValueError("no")


def fails_on_time(time: int) -> Any:
    raise ValueError("no")


class Counting(ps.KeyedFunction):
    output = "v long"

    def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
        raise ValueError("no")


def counted(rows: Any) -> Any:
    return rows.window(ps.tumbling("5 minutes")).aggregate(n=ps.rows())


PLANS = {
    "map": lambda: counted(stream().map(fails_on_row)),
    "where": lambda: counted(stream().where(fails_on_row)),
    "map_batches": lambda: counted(stream().map_batches(fails_on_batch)),
    "custom": lambda: stream().window(ps.custom(fails_on_time)).aggregate(n=ps.rows()),
    "process": lambda: stream().key_by("v").process(Counting()),
    "enrich": lambda: stream().enrich(fails_on_row, output="w long", retries=0),
    "match alone": lambda: (
        stream().key_by("v").match(ps.pattern("a", lambda event: fails_on_row(event)).within("1 minute"), output={})
    ),
    "match so far": lambda: (
        stream()
        .key_by("v")
        .match(ps.pattern("a", lambda event, match: fails_on_row(event)).within("1 minute"), output={})
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_quarantined_row_says_which_function_failed_where_and_on_what(name: str) -> None:
    pytest.importorskip("pyarrow")
    reasons = []
    for engine in ("reference", "columnar"):
        played = Script(PLANS[name](), engine)
        played.batch([{"at": "1970-01-01T12:00:00Z", "v": 3, "token": "hunter2", "note": "n"}])
        played.end()
        (bad,) = played.quarantined
        reasons.append(bad.reason)
    assert re.fullmatch(
        rf"ValueError: no · in (fails_on_\w+|Counting\.on_event) \({HERE}, line \d+\) · with .*", reasons[0]
    )
    assert name == "custom" or "'v': 3" in reasons[0]
    assert "hunter2" not in reasons[0]
    assert reasons[0] == reasons[1]


class Summing(ps.Fold):
    def zero(self) -> int:
        return 0

    def add(self, held: int, value: int) -> int:
        if value == 3:
            raise ValueError("no threes")
        return held + value

    def combine(self, left: int, right: int) -> int:
        return left + right

    def result(self, held: int) -> int:
        return held


def test_a_fold_that_fails_says_where_and_on_which_value() -> None:
    script = Script(stream().window(ps.tumbling("5 minutes")).aggregate(n=ps.fold("v", Summing(), type="long")))
    with pytest.raises(DataError) as caught:
        script.batch([{"at": "1970-01-01T12:00:00Z", "v": v} for v in (1, 3, 5)])
    assert re.search(rf"no threes · in Summing\.add \({HERE}, line \d+\) · with \{{'v': 3\}}$", caught.value.what)


def test_windows_whose_merge_fails_say_where_and_which_windows() -> None:
    def merges(windows: Any) -> Any:
        raise ValueError("no")

    rule = ps.custom(lambda t: [(t, t + 10)], merges)
    script = Script(stream().window(rule).aggregate(n=ps.rows()))
    with pytest.raises(DataError) as caught:
        script.batch([{"at": "1970-01-01T00:00:01Z", "v": 1}])
    assert (
        f"ValueError: no · in merges ({HERE}, line {line_of(merges)}) · with [(1000000, 1000010)]" in caught.value.what
    )


def test_foreach_batch_that_fails_says_where_and_in_which_batch() -> None:
    def publish(rows: Any, batch: Any) -> None:
        raise ValueError("no room")

    writer = ps.foreach_batch(publish).open(None)  # type: ignore[arg-type]
    with pytest.raises(SinkError) as caught:
        writer.write(Batch("lineage", 3, 1, 2, "0", False), None)
    assert caught.value.what == (
        "the function of ps.foreach_batch failed on batch 3 with 2 rows: "
        f"ValueError: no room · in publish ({HERE}, line {line_of(publish)})"
    )
    assert "batch.token" in caught.value.instead


def test_a_quarantined_row_has_the_fingerprint_it_had_before_its_function_was_moved() -> None:
    """A batch that is played again after its file was edited is the same batch."""
    pa = pytest.importorskip("pyarrow")
    from penstock.connectors.fingerprint import fingerprint, fingerprint_of
    from penstock.plan.output_schemas import quarantine_schema

    def table(reason: str) -> Any:
        return pa.table([["s"], ["0"], [1], ["map"], [reason], ["{}"]], schema=quarantine_schema())

    moved = [fingerprint_of("quarantine", table(f"ValueError: no · in f (a.py, line {n}) · with {{}}")) for n in (1, 2)]
    assert moved[0] == moved[1] == fingerprint(table("ValueError: no"))
    assert moved[0] != fingerprint_of("quarantine", table("ValueError: yes · in f (a.py, line 1) · with {}"))
