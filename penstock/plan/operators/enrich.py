"""What is asked of the outside: a function of rows, how it is asked, and what becomes of what it does not answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.diagnostics.user_functions import shown, without_value
from penstock.errors import DataError, PlanError, did_you_mean, not_a_column
from penstock.plan.stages import MAIN, Operator, Side
from penstock.types.durations import Duration, not_negative, positive, words
from penstock.types.schema import Schema, schema
from penstock.types.validate import Nonconforming, decode

OnError = Literal["quarantine", "null", "fail"]
ON_ERROR: tuple[OnError, ...] = ("quarantine", "null", "fail")
STEP = "enrich"
CACHE_ROWS = 100_000
LONGEST_WAIT = 10_000_000  # between two attempts, in microseconds
_EXAMPLE = 'write .enrich(look_up, output="country string, risk long")'

Asked = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a function is asked: how many questions at a time, how long for each, how often, and when all is given up."""

    concurrency: int
    timeout: int
    retries: int
    backoff: int
    give_up: int

    def wait(self, attempt: int) -> int:
        """How long is waited after so many attempts: twice as long each time, up to ten seconds."""
        doubled = self.backoff << min(attempt - 1, 30)
        return min(doubled, max(self.backoff, LONGEST_WAIT))

    @property
    def longest(self) -> int:
        """The longest that one question can take."""
        return (self.retries + 1) * self.timeout + sum(self.wait(number) for number in range(1, self.retries + 1))

    @property
    def patience(self) -> int:
        """How long there may be no answer at all before the questions that are left are not asked any more."""
        return max(self.give_up, self.longest)

    def __str__(self) -> str:
        again = f"{self.retries + 1} times" if self.retries else "once"
        return f"{self.concurrency} at a time, each for {words(self.timeout)} and at most {again}"


@dataclass(frozen=True, slots=True)
class Enrich(Operator):
    """Each row with columns that a function outside of the stream says of it, or of some of its columns."""

    function: Asked
    answer: Schema
    on: tuple[str, ...]
    asking: Asking
    cache: int | None = None
    cache_rows: int = CACHE_ROWS
    on_error: OnError = "quarantine"

    def asks(self, side: Side) -> Schema:
        """The columns that a question is made of."""
        names = self.on or side.schema.names
        return Schema(tuple(column for column in side.schema.columns if column.name in names))

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Refuse columns that are not there, or are there already; warn of calls that nobody can end."""
        held = sides[0].schema
        for name in self.on:
            held.type_of(name, "enrich")
        taken = [name for name in self.answer.names if name in held.names]
        if taken:
            raise PlanError(
                f"the rows have a column {taken[0]!r} already",
                "what enrich is answered stands beside the columns of the row, which stay as they are",
                f"call it otherwise in output=, or rename the other first: .select(..., {taken[0]}_given={taken[0]!r})",
            )
        if self.in_threads:
            return (f"{self.name} is not async: it runs in threads, and a call that hangs keeps its thread",)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """The rows with their answers."""
        return {MAIN: Schema((*sides[0].schema.columns, *self.answer.columns))}

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """The answers of a batch until it cannot be played again, and what is remembered beyond it."""
        said = "what a batch was answered, in a file beside the checkpoint, until the batch after it is committed"
        if self.cache is None:
            return (said,)
        return (said, f"answers for {words(self.cache)} of processing time, of each shard the last {self.cache_rows:,}")

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """What is asked and what is answered; how it is asked, and how long an answer is remembered, may change."""
        return {"operator": "enrich", "asks": str(self.asks(sides[0])), "answers": str(self.answer)}

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def in_threads(self) -> bool:
        """Whether a call blocks, so that it needs a thread."""
        called = getattr(self.function, "__call__", None)  # noqa: B004 - an object may be called by an async method
        return not (inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called))

    def row(self, answer: Any) -> dict[str, Any]:
        """An answer as columns; one that is left out is null, and so are all of an answer that is None."""
        if answer is None:
            return dict.fromkeys(self.answer.names)
        if not isinstance(answer, Mapping):
            raise Nonconforming(f"{self.name} gave {shown(answer)}, which is not a row; give a dict, or None")
        unknown = [name for name in answer if name not in self.answer.names]
        if unknown:
            hint = did_you_mean(str(unknown[0]), self.answer.names)
            raise Nonconforming(f"{self.name} gave the column {unknown[0]!r}, which output= does not have; {hint}")
        values, bad = decode(answer, self.answer)
        if bad is not None:
            raise Nonconforming(f"{self.name} gave {bad}")
        return values

    def __str__(self) -> str:
        of = f"each different ({', '.join(self.on)})" if self.on else "each row"
        return f"{self.name} of {of}, asked {self.asking}; no answer: {self.on_error}"


def unanswered(rule: Enrich, question: Mapping[str, Any], reason: str) -> DataError:
    """The end of a run that is to stop where a question has no answer."""
    return DataError(
        f"{rule.name} has no answer for {shown(dict(question))}: {without_value(reason)}",
        'on_error="fail" stops the run where a question has no answer',
        'start it again once the service answers: the batch is asked anew; or say on_error="quarantine" or "null"',
    )


def enrich_rule(
    function: Any,
    *,
    output: str | Schema | None,
    on: str | Sequence[str] | None,
    concurrency: int,
    timeout: Duration,
    retries: int,
    backoff: Duration,
    give_up: Duration,
    cache: Duration | None,
    cache_rows: int,
    on_error: str,
) -> Enrich:
    """The rule of `.enrich(function, output=…, …)`, checked as far as it can be without its stream."""
    _check_function(function)
    if output is None:
        raise PlanError(
            "enrich does not say the columns of an answer", "what it adds to a row has names and types", _EXAMPLE
        )
    if on_error not in ON_ERROR:
        raise PlanError(
            f"on_error is {on_error!r}",
            "a row without an answer goes to the quarantine, has nulls, or stops the run",
            did_you_mean(str(on_error), ON_ERROR, 'write on_error="quarantine", "null" or "fail"'),
        )
    asking = Asking(
        _number(concurrency, "concurrency", 1),
        positive(timeout, "timeout"),
        _number(retries, "retries", 0),
        not_negative(backoff, "backoff"),
        positive(give_up, "give_up"),
    )
    lasting = None if cache is None else positive(cache, "cache")
    found = next(one for one in ON_ERROR if one == on_error)
    return Enrich(function, schema(output), _asked_of(on), asking, lasting, _number(cache_rows, "cache_rows", 1), found)


def _check_function(function: Any) -> None:
    if not callable(function) or isinstance(function, type):
        raise PlanError(
            f"enrich was given {function!r}, which is not a function",
            "it calls a function, async or plain, with a row as a dict",
            _EXAMPLE,
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise PlanError(
            f"{getattr(function, '__name__', function)} yields rows",
            "a question has one answer, a dict of columns or None",
            "return a dict",
        )
    if not _takes_a_row(function):
        raise PlanError(
            f"{getattr(function, '__name__', function)} cannot be called with a row",
            "it is called with one argument, a row as a dict, and nothing else",
            "write async def look_up(row): …",
        )


def _takes_a_row(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument; of one that does not say it is found out by calling."""
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        taken.bind({})
    except TypeError:
        return False
    return True


def _asked_of(on: Any) -> tuple[str, ...]:
    """The columns that a question is made of, as they are named; none stand for all."""
    if on is None:
        return ()
    names = (on,) if isinstance(on, str) else tuple(on) if isinstance(on, Sequence) else ()
    if not names:
        raise not_a_column(on, "enrich(on=)", "ip")
    return names


def _number(number: Any, what: str, least: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise PlanError(
            f"{what} is {number!r}",
            f"{what} is a whole number, {least} or more",
            f"write {what}={max(least, 3)}",
        )
    return number
