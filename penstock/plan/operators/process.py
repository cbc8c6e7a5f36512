"""What does a function remember of each key: its state, declared as fields, what it gives, and when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from penstock.errors import PlanError, did_you_mean, not_a_column
from penstock.plan.operators.join_schema import check_deleted
from penstock.plan.stages import MAIN, Operator, Side
from penstock.plan.tables import until_gone
from penstock.types.durations import Duration, positive, words
from penstock.types.schema import Schema, canonical_type, schema
from penstock.types.validate import decode_value

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.runtime.process_context import Context

Shape = Literal["value", "items", "mapping"]
TimeKind = Literal["event", "processing"]
KINDS: tuple[TimeKind, ...] = ("event", "processing")
_TAKEN = (MAIN, "late", "quarantine", "archive")


@dataclass(frozen=True, slots=True)
class Field:
    """A piece of state of each key: one value, a list or a map; its types, and how long an entry lasts."""

    shape: Shape
    type: str
    key_type: str | None = None
    default: Any = None
    ttl: int | None = None
    ttl_by: TimeKind = "event"

    @property
    def kind(self) -> str:
        """What it holds, in words."""
        match self.shape:
            case "value":
                return self.type
            case "items":
                return f"list of {self.type}"
        return f"map of {self.key_type} to {self.type}"


def value(type: str, *, default: Any = None, ttl: Duration | None = None, ttl_by: TimeKind = "event") -> Any:
    """One value of each key: `failures = ps.value("long", default=0)`; `del self.failures` clears it."""
    kind = canonical_type(type)
    if default is not None:
        try:
            decode_value(default, kind)
        except (ValueError, OverflowError) as error:
            raise PlanError(
                f"the default {default!r} is no {kind}",
                str(error),
                f'write a default of this type, or none: ps.value("{kind}")',
            ) from None
    return Field("value", kind, None, default, *_lasting(ttl, ttl_by))


def items(type: str, *, ttl: Duration | None = None, ttl_by: TimeKind = "event") -> Any:
    """A list of each key: `recent = ps.items("timestamp")`; its ttl counts for each item from when it was put in."""
    return Field("items", canonical_type(type), None, None, *_lasting(ttl, ttl_by))


def mapping(key_type: str, type: str, *, ttl: Duration | None = None, ttl_by: TimeKind = "event") -> Any:
    """A map of each key: `seen = ps.mapping("string", "long")`; its ttl counts for each entry from its last write."""
    return Field("mapping", canonical_type(type), canonical_type(key_type), None, *_lasting(ttl, ttl_by))


class Timer(NamedTuple):
    """A timer that fires: for when it was set, its name, and which clock it waited for, event or processing."""

    time: datetime
    name: str
    kind: TimeKind


class KeyedFunction:
    """A function with a memory of its own for every key; declare fields, `output`, `on_event`, perhaps `on_timer`."""

    output: ClassVar[str | Schema] = ""
    sides: ClassVar[Mapping[str, str | Schema]] = {}

    def on_event(self, event: dict[str, Any], key: Any, context: Context) -> None:
        """An event has come."""
        raise NotImplementedError

    def on_timer(self, timer: Timer, key: Any, context: Context) -> None:
        """The time has come that a timer was set for."""
        raise NotImplementedError


def fields_of(function: KeyedFunction) -> dict[str, Field]:
    """The state that a function declares, by name, in order of the names."""
    kind = type(function)
    found = {name: getattr(kind, name) for name in dir(kind) if isinstance(getattr(kind, name, None), Field)}
    return dict(sorted(found.items()))


def has_timers(function: KeyedFunction) -> bool:
    """Whether a function says what to do when a timer fires."""
    return type(function).on_timer is not KeyedFunction.on_timer


@dataclass(frozen=True, slots=True)
class Process(Operator):
    """A keyed function over a stream: in order of event time, or as the rows come."""

    function: KeyedFunction
    ordered: bool = False
    deleted: str | None = None

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Refuse what cannot run; warn of state that nothing lets go of."""
        _check_function(self.function)
        if not sides[0].keys:
            raise PlanError(
                f"process({self.name}) on a stream that has no key",
                "its state is kept for each key",
                f'write .key_by("user").process({self.name}())',
            )
        self.outputs(sides)
        said = [
            f"{name} of {self.name} has no ttl: it is kept for every key until the function clears it"
            for name, field in fields_of(self.function).items()
            if field.ttl is None
        ]
        for rules in sides[1:]:
            check_deleted(self.deleted, rules, "process")
            if self.deleted is None:
                said.append("no rule is ever withdrawn: the memory of every shard grows with their ids")
        return tuple(said)

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """The main output and the others by name."""
        made = {MAIN: _schema(self.name, "output", self.function.output)}
        for name, columns in self.function.sides.items():
            if name in _TAKEN:
                raise PlanError(
                    f"an output of {self.name} cannot be called {name!r}",
                    f"{', '.join(_TAKEN)} have a meaning already",
                    "give the output another name",
                )
            made[name] = _schema(self.name, f"sides[{name!r}]", columns)
        return made

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Each field, the timers, and what waits to be in order."""
        said = [
            f"{name}: a {field.kind} for each key, {_until(field)}" for name, field in fields_of(self.function).items()
        ]
        if has_timers(self.function):
            said.append("timers of each key, until they fire or are cancelled")
        if self.ordered:
            said.append("rows, until W has passed them, to be in order of event time")
        for rules in sides[1:]:
            said.append(f"of each {' and '.join(rules.keys)} the last rule, on every shard, {until_gone(self.deleted)}")
        return tuple(said)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """The key, the fields and, where rows wait, their columns; how long entries last may change."""
        bound = {"operator": "process", "key": str(sides[0].key_schema), "ordered": str(self.ordered).lower()}
        for name, field in fields_of(self.function).items():
            bound[f"state {name}"] = field.kind + (f" with ttl by {field.ttl_by} time" if field.ttl else "")
        if has_timers(self.function):
            bound["timers"] = "of each key"
        if self.ordered:
            bound["rows"] = str(sides[0].schema)
        for rules in sides[1:]:
            bound |= {"rules": str(rules.schema), "withdrawn by": self.deleted or ""}
        return bound

    @property
    def name(self) -> str:
        """What the function is called."""
        return type(self.function).__name__

    def __str__(self) -> str:
        return f"{self.name} for each key, {'in order of event time' if self.ordered else 'as the rows come'}"


def process_rule(function: Any, *, ordered: bool = False, deleted: str | None = None) -> Process:
    """The rule of `.process(function, ordered=…)`, checked as far as it can be without its streams."""
    if not isinstance(ordered, bool):
        raise PlanError(
            f"ordered is {ordered!r}",
            "ordered=True calls the function in order of event time, ordered=False as the rows come",
            "write ordered=True, or leave it out",
        )
    _check_function(function)
    return Process(function, ordered, deleted)


def check_rules(rules: Any, rule_key: Any, deleted: str | None) -> None:
    """Refuse rules without an id, and what is said of rules where there are none."""
    if rules is None and (rule_key is not None or deleted is not None):
        raise PlanError(
            f"process was given {'rule_key' if rule_key is not None else 'deleted'} and no rules",
            "both say something of the stream of rules",
            'write .process(…, rules=limits, rule_key="id"), or leave it out',
        )
    if rules is not None and not rule_key:
        raise PlanError(
            "process was given rules and no rule_key",
            "a rule that is changed or withdrawn is known by its id",
            'write rule_key="id", or a list of columns that are its id together',
        )
    if rules is not None and not isinstance(rule_key, Sequence):
        raise not_a_column(rule_key, "process(rule_key=)", "id")


def _lasting(ttl: Duration | None, ttl_by: TimeKind) -> tuple[int | None, TimeKind]:
    if ttl_by not in KINDS:
        raise PlanError(
            f"ttl_by is {ttl_by!r}",
            "an entry's time to live counts by event time or by processing time",
            'write ttl_by="event" or ttl_by="processing"',
        )
    return None if ttl is None else positive(ttl, "ttl"), ttl_by


def _check_function(function: Any) -> None:
    if isinstance(function, type) and issubclass(function, KeyedFunction):
        raise PlanError(
            f"process was given the class {function.__name__}",
            "it takes a function made of the class, which may have settings",
            f"write .process({function.__name__}())",
        )
    if not isinstance(function, KeyedFunction):
        raise PlanError(
            f"process was given {function!r}, which is not a keyed function",
            "a keyed function is an instance of a class that declares its state",
            "write a class that inherits from ps.KeyedFunction and has on_event",
        )
    name = type(function).__name__
    for base in (kind for kind in type(function).__mro__ if kind is not KeyedFunction):
        for field in [field for field, held in vars(base).items() if isinstance(held, Field)]:
            _check_field(function, name, field)
    if type(function).on_event is KeyedFunction.on_event:
        raise PlanError(
            f"{name} has no on_event",
            "a keyed function says what it does with an event",
            "write def on_event(self, event, key, context): …",
        )


def _check_field(function: KeyedFunction, name: str, field: str) -> None:
    over = [
        base for base in type(function).__mro__[1:] if field in vars(base) and not isinstance(vars(base)[field], Field)
    ]
    if over:
        raise PlanError(
            f"the field {field!r} of {name} hides {over[0].__name__}.{field}",
            "state and what a function can do are reached by the same names",
            "give the field another name",
        )
    if not isinstance(getattr(type(function), field), Field):
        raise PlanError(
            f"{name}.{field} hides a field of state",
            "state and what a function can do are reached by the same names",
            "give one of them another name",
        )
    if field in vars(function):
        raise PlanError(
            f"{name} sets its field {field!r} when it is made",
            "state is of a key, and there is none yet",
            f"declare what it begins with: {field} = ps.value(…, default=…)",
        )


def _schema(name: str, what: str, columns: Any) -> Schema:
    if not columns:
        raise PlanError(
            f"{name} does not say the columns of its {what}",
            "the rows that it emits have names and types",
            f'write {what} = "user string, tries long" in the class',
        )
    return schema(columns)


def _until(field: Field) -> str:
    if field.ttl is None:
        return "until the function clears it"
    return f"let go {words(field.ttl)} after it was last written, by {field.ttl_by} time"


def unknown_output(name: object, known: Sequence[str]) -> tuple[str, str, str]:
    """The refusal of an output that a function did not declare."""
    why = f"it declares: {', '.join(known)}" if known else "it declares none but its main one"
    return (
        f"emit_to was given {name!r}, which is not an output of the function",
        why,
        did_you_mean(str(name), known, "declare it in sides"),
    )
