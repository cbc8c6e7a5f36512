"""What a keyed function can do while it is called: read and write the key's state, emit rows, set timers.

What a call emits and what timers it sets is only noted, and done when the call has come to its end; what it writes is
journaled, so that a call that throws leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.diagnostics.unknown_names import unknown_name
from penstock.diagnostics.user_functions import error_alone, place, shown
from penstock.errors import DataError, PlanError, did_you_mean
from penstock.plan.operators.process import KINDS, Process, TimeKind, Timer, unknown_output
from penstock.plan.stages import MAIN
from penstock.runtime.broadcast_rules import NONE, Rules
from penstock.types.durations import microseconds
from penstock.types.schema import Schema
from penstock.types.timestamps import EARLIEST, EPOCH, LATEST, from_datetime, plus
from penstock.types.validate import Nonconforming, decode_value


class Refused(Nonconforming):
    """What a call may not do: what, why, and what to write instead, in one line, for the quarantine."""

    def __init__(self, what: str, why: str, instead: str) -> None:
        super().__init__(f"{what}: {why}; {instead}")


class Emit(NamedTuple):
    """A row to give."""

    output: str
    row: dict[str, Any]


class SetTimer(NamedTuple):
    """A timer to set."""

    kind: TimeKind
    time: int
    name: str


class Cancel(NamedTuple):
    """A timer to cancel, or all of a name."""

    kind: TimeKind
    time: int | None
    name: str


_MICROSECOND = timedelta(microseconds=1)
Effect = Emit | SetTimer | Cancel
Undo = tuple[Any, ...]
Columns = dict[str, Callable[[Any], Any]]


class Context:
    """What a function is called with besides its event: the clocks, and what can be done with rows and timers."""

    __slots__ = ("_now", "_outputs", "_rules", "_stamp", "_time", "_timers", "_watermark", "effects", "journal")

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def __init__(self, outputs: Mapping[str, Schema], timers: bool, ruled: bool = False) -> None:
        self._outputs: dict[str, Columns] = {
            name: {column.name: _decoder(column.type) for column in schema.columns} for name, schema in outputs.items()
        }
        self._timers = timers
        self._rules: Rules | None = NONE if ruled else None
        self._time = self._stamp = self._watermark = self._now = 0
        self.effects: list[Effect] = []
        self.journal: list[Undo] = []

    def batch(self, watermark: int, now: int) -> None:
        """A batch begins, with nothing left of one that was broken off."""
        self._watermark, self._now = watermark, now
        self.effects.clear()
        self.journal.clear()

    def ruled(self, rules: Rules) -> None:
        """These rules hold from this batch on."""
        self._rules = rules

    def call(self, time: int, stamp: int) -> None:
        """A call begins: its time, and the event time that what it writes counts from."""
        self._time, self._stamp = time, stamp

    def deadline(self, ttl: int, kind: TimeKind) -> int:
        """When an entry that is written now is let go of."""
        return plus(self._stamp if kind == "event" else self._now, ttl)

    @property
    def time(self) -> datetime:
        """The event time of the event or timer; of a processing timer it is W, or now while there is no W."""
        return moment(self._time)

    @property
    def watermark(self) -> datetime:
        """W; the first instant of the year 1 where it is -∞, the last of 9999 where it is +∞."""
        return moment(self._watermark)

    @property
    def now(self) -> datetime:
        """The processing clock of the batch."""
        return moment(self._now)

    @property
    def rules(self) -> Rules:
        """The rules that hold in this batch, by id."""
        if self._rules is None:
            raise Refused("the function asked for rules", "it was given none", "write .process(…, rules=…)")
        return self._rules

    def emit(self, row: Mapping[str, Any] | None = None, /, **columns: Any) -> None:
        """Give a row, as a dict or column by column; a column that is left out is null."""
        self.effects.append(Emit(MAIN, self._row(MAIN, "emit", row, columns)))

    def emit_to(self, output: str, row: Mapping[str, Any] | None = None, /, **columns: Any) -> None:
        """Give a row to another output."""
        if output not in self._outputs or output == MAIN:
            raise Refused(*unknown_output(output, [name for name in self._outputs if name != MAIN]))
        self.effects.append(Emit(output, self._row(output, "emit_to", row, columns)))

    def timer(self, at: datetime | timedelta | str, name: str = "", kind: TimeKind = "event") -> None:
        """Set a timer, by event time or by the processing clock: for a moment, or so long after `time` or `now`."""
        if not self._timers:
            raise Refused("the function set a timer", "it has no on_timer to be called", "write on_timer")
        self.effects.append(SetTimer(_kind(kind), self._moment(at, kind), _name(name)))

    def cancel(self, at: datetime | timedelta | str | None = None, name: str = "", kind: TimeKind = "event") -> None:
        """Take a timer back, or without a moment all of this name; one that is not set is no error."""
        self.effects.append(Cancel(_kind(kind), None if at is None else self._moment(at, kind), _name(name)))

    def _row(self, output: str, what: str, row: Any, columns: dict[str, Any]) -> dict[str, Any]:
        if row is not None:
            if not isinstance(row, Mapping):
                raise Refused(
                    f"{what} was given {shown(row)}", "it is not a row", "give a dict, or the columns by name"
                )
            columns = {**row, **columns}
        known = self._outputs[output]
        if not columns.keys() <= known.keys():
            odd = next(name for name in columns if name not in known)
            why = f"its columns are: {', '.join(known)}"
            raise Refused(f"{what} gave the column {odd!r}", why, did_you_mean(str(odd), known, "give one of these"))
        made = {}
        for name, decode in known.items():
            given = columns.get(name)
            try:
                made[name] = None if given is None else decode(given)
            except (ValueError, OverflowError) as error:
                raise Refused(f"{what} gave the column {name!r}", str(error), "give a value of its type") from None
        return made

    def _moment(self, at: Any, kind: TimeKind) -> int:
        if isinstance(at, datetime):
            found = from_datetime(at)
        elif isinstance(at, (str, timedelta)):
            try:
                found = (self._time if kind == "event" else self._now) + microseconds(at, "a timer")
            except PlanError as error:
                raise Refused(error.what, error.why, error.instead) from None
        else:
            raise Refused(
                f"a timer was set for {shown(at)}",
                "it is neither a moment nor a length of time",
                'give a datetime, or words such as "5 minutes"',
            )
        if not EARLIEST <= found <= LATEST:
            raise Refused(
                "a timer was set for a time outside the years 1 to 9999", "no clock shows it", "set it nearer"
            )
        return found


def moment(instant: int) -> datetime:
    """An instant as people's code sees it; the infinities are the first and the last there is."""
    if EARLIEST <= instant <= LATEST:
        return EPOCH + timedelta(0, 0, instant)
    return moment(EARLIEST if instant < EARLIEST else LATEST)


def whole_number(kind: str, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A quick look for what is nearly always an int that fits; anything else goes the long way."""
    limit = 2**31 if kind == "int" else 2**63

    def whole(given: Any) -> Any:
        return given if type(given) is int and -limit <= given < limit else otherwise(given)

    return whole


def _decoder(kind: str) -> Callable[[Any], Any]:
    """A value that is given out, in canonical form; ValueError where it is none of the type."""
    decode = partial(decode_value, kind=kind)
    if kind in ("int", "long"):
        return whole_number(kind, decode)
    if kind != "timestamp":
        return decode

    def stamped(given: Any) -> Any:
        return (given - EPOCH) // _MICROSECOND if type(given) is datetime and given.tzinfo is UTC else decode(given)

    return stamped


def _kind(kind: Any) -> TimeKind:
    if kind not in KINDS:
        raise Refused(
            f"a timer of the kind {kind!r}",
            "timers wait for event time or processing time",
            'write kind="processing", or leave it out',
        )
    found: TimeKind = kind
    return found


def _name(name: Any) -> str:
    try:
        return str(decode_value(name, "string"))
    except ValueError as error:
        raise Refused(f"a timer was named {shown(name)}", str(error), "name it by text") from None


def timer_failed(rule: Process, key: Any, timer: Timer, error: Exception) -> DataError:
    """The error of a timer's call, which names the key and the timer."""
    named = f" {timer.name!r}" if timer.name else ""
    return DataError(
        f"{rule.name}.on_timer failed for the key {shown(key)} and the {timer.kind} timer{named} "
        f"of {timer.time.isoformat()}: {error_alone(error)}{place(error, rule.function.on_timer)}",
        "there is no row that could be quarantined, and a timer that is dropped in silence would be a wrong answer",
        "catch in on_timer what can be borne; the run goes on from the batch before once it is mended",
    )
