"""The list and the map of a key, as a function sees them: like Python's own, each write checked and journaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, overload

from penstock.plan.operators.process import Field, KeyedFunction, TimeKind, fields_of
from penstock.runtime.process_context import Context, Refused, moment, whole_number
from penstock.types.timestamps import MAX_TIME
from penstock.types.validate import decode_value

GONE = object()


def checker(what: str, kind: str) -> Callable[[Any], Any]:
    """The value that a function stores, as it will read it; refused where it is of another type."""

    def check(given: Any) -> Any:
        try:
            value = decode_value(given, kind)
        except (ValueError, OverflowError) as error:
            raise Refused(f"{what} was given {type(given).__name__}", str(error), f"give it a {kind}") from None
        return moment(value) if kind == "timestamp" else value

    return whole_number(kind, check) if kind in ("int", "long") else check


def one_key(value: Any) -> Any:
    """A key of a map: one zero and one NaN."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


class _View:
    """A list or a map of a key; `until` says how long each entry lasts, where it does not last for ever."""

    __slots__ = ("_check", "_context", "_field", "_held", "_name", "until", "values_")

    values_: Any
    until: Any

    def __init__(self, held: dict[str, Any], name: str, field: Field, context: Context) -> None:
        self._held, self._name, self._field, self._context = held, name, field, context
        self._check = checker(f"self.{name}", field.type)

    def __len__(self) -> int:
        return len(self.values_)

    def __repr__(self) -> str:
        return repr(self.values_)

    def __eq__(self, other: object) -> bool:
        return bool(self.values_ == (other.values_ if isinstance(other, _View) else other))

    __hash__ = None  # type: ignore[assignment]

    def clear(self) -> None:
        """Let go of all entries."""
        self._restorable()
        self.values_.clear()
        self.until.clear()

    def _restorable(self) -> None:
        """Have all of it put back if the call throws."""
        self._context.journal.append((_restore, self, self.values_.copy(), self.until.copy()))

    def _deadline(self) -> int:
        """Until when an entry lasts that is written now."""
        if self._field.ttl is None:
            return MAX_TIME
        until = self._context.deadline(self._field.ttl, self._field.ttl_by)
        if self._field.ttl_by == "event":
            sooner(self._held, until)
        return until


class Items(_View, MutableSequence[Any]):
    """The list of a key."""

    __slots__ = ()

    def __init__(self, held: dict[str, Any], name: str, field: Field, context: Context) -> None:
        super().__init__(held, name, field, context)
        self.values_: list[Any] = []
        self.until: list[int] = []

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self.values_[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values_.copy())

    def __setitem__(self, place: int | slice, given: Any) -> None:
        if isinstance(place, slice):
            raise Refused(
                f"a part of self.{self._name} was assigned",
                "only an item or the whole list can be",
                f"write self.{self._name} = […]",
            )
        value = self._check(given)
        self._restorable()
        self.values_[place] = value
        self.until[place] = self._deadline()

    def __delitem__(self, place: int | slice) -> None:
        self._restorable()
        del self.values_[place], self.until[place]

    def insert(self, index: int, value: Any) -> None:
        """Put an item before a place."""
        checked = self._check(value)
        self._restorable()
        self.values_.insert(index, checked)
        self.until.insert(index, self._deadline())

    def append(self, value: Any) -> None:
        """Put an item at the end."""
        checked = self._check(value)
        self._context.journal.append((_take_last, self))
        self.values_.append(checked)
        self.until.append(self._deadline())

    def assign(self, given: Any) -> None:
        """Hold these items and no others."""
        values = [self._check(value) for value in given]
        self.clear()
        self.values_ += values
        self.until += [self._deadline()] * len(values)

    def forget(self, clock: int) -> int:
        """Let go of the items that have run out; when the next one does."""
        if any(until <= clock for until in self.until):
            left = [i for i, until in enumerate(self.until) if until > clock]
            self.values_ = [self.values_[i] for i in left]
            self.until = [self.until[i] for i in left]
        return min(self.until, default=MAX_TIME)


class Entries(_View, MutableMapping[Any, Any]):
    """The map of a key, in the order in which its keys came."""

    __slots__ = ("_check_key",)

    def __init__(self, held: dict[str, Any], name: str, field: Field, context: Context) -> None:
        super().__init__(held, name, field, context)
        self._check_key = checker(f"a key of self.{name}", field.key_type or "string")
        self.values_: dict[Any, Any] = {}
        self.until: dict[Any, int] = {}

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.values_[one_key(self._check_key(key))]
        except (KeyError, Refused):
            raise KeyError(key) from None

    def __setitem__(self, key: Any, given: Any) -> None:
        place, value = one_key(self._check_key(key)), self._check(given)
        for held, new in ((self.values_, value), (self.until, self._deadline())):
            self._context.journal.append((put_back, held, place, held.get(place, GONE)))
            held[place] = new

    def __delitem__(self, key: Any) -> None:
        self[key]
        place = one_key(self._check_key(key))
        self._restorable()
        del self.values_[place], self.until[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values_.copy())

    def assign(self, given: Any) -> None:
        """Hold these entries and no others."""
        entries = {one_key(self._check_key(key)): self._check(value) for key, value in dict(given).items()}
        self.clear()
        self.values_ |= entries
        self.until |= dict.fromkeys(entries, self._deadline())

    def forget(self, clock: int) -> int:
        """Let go of the entries that have run out; when the next one does."""
        for key in [key for key, until in self.until.items() if until <= clock]:
            del self.values_[key], self.until[key]
        return min(self.until.values(), default=MAX_TIME)


def put_back(held: dict[Any, Any], name: Any, old: Any) -> None:
    if old is GONE:
        held.pop(name, None)
    else:
        held[name] = old


def _take_last(items: Items) -> None:
    del items.values_[-1], items.until[-1]


def _restore(of: _View, values: Any, until: Any) -> None:
    """Put all back where it was; what was journaled before knows the same list or dict."""
    for held, old in ((of.values_, values), (of.until, until)):
        held.clear()
        (held.extend if isinstance(held, list) else held.update)(old)


def sooner(held: dict[str, Any], until: int) -> None:
    """Note that something of a cell runs out at a time."""
    held["@"] = min(held.get("@", MAX_TIME), until)


def remembering(function: KeyedFunction, context: Context) -> type[KeyedFunction]:
    """The class of a function's cells: what the function was made with is theirs in common, its fields are not."""
    kind, fields = type(function), fields_of(function)
    body: dict[str, Any] = {
        name: staticmethod(held) if hasattr(held, "__get__") else held for name, held in vars(function).items()
    }
    for name, field in fields.items():
        body[name] = _Empty(name, field, context)
        if field.shape == "value":
            default = field.default
            body[name] = None if default is None else checker(f"self.{name}", field.type)(default)
    metaclass: Any = type(kind)
    made: type[KeyedFunction] = metaclass(
        kind.__name__,
        (kind,),
        {
            **body,
            "__setattr__": _setter(kind.__name__, fields, context),
            "__delattr__": _deleter(kind.__name__, fields, context),
        },
    )
    return made


def _setter(owner: str, fields: Mapping[str, Field], context: Context) -> Callable[[Any, str, Any], None]:
    """What `self.name = value` does; values without a ttl, and those with one, have short ways of their own."""
    journal, delete = context.journal, _deleter(owner, fields, context)
    values = {name: field for name, field in fields.items() if field.shape == "value"}
    plain = {name: checker(f"self.{name}", field.type) for name, field in values.items() if field.ttl is None}
    lasting = {
        name: (checker(f"self.{name}", field.type), f"@{name}", field.ttl, field.ttl_by == "event")
        for name, field in values.items()
        if field.ttl is not None
    }

    def set_field(cell: Any, name: str, given: Any) -> None:
        held = cell.__dict__
        if given is None or name not in values:
            _set_otherwise(owner, fields, delete, (cell, name, given))
        elif name in plain:
            value = plain[name](given)
            journal.append((put_back, held, name, held.get(name, GONE)))
            held[name] = value
        else:
            check, mark, ttl, by_event = lasting[name]
            value = check(given)
            until = (context._stamp if by_event else context._now) + ttl
            if until > MAX_TIME:
                until = MAX_TIME
            journal.append((_put_both_back, held, name, held.get(name, GONE), mark, held.get(mark, GONE)))
            held[name], held[mark] = value, until
            if by_event and until < held.get("@", MAX_TIME):
                held["@"] = until

    return set_field


def _set_otherwise(
    owner: str, fields: Mapping[str, Field], delete: Callable[[Any, str], None], what: tuple[Any, str, Any]
) -> None:
    """Assign a whole list or map, or None to a value, which clears it."""
    cell, name, given = what
    if name not in fields:
        raise _undeclared(owner, name)
    if fields[name].shape != "value":
        view = getattr(cell, name)
        if given is not view:
            view.assign(given)
        return
    if fields[name].default is not None:
        raise Refused(
            f"self.{name} was given None",
            "it has a default, which a cleared value shows",
            f"write del self.{name}, or declare it without a default",
        )
    delete(cell, name)


def _deleter(owner: str, fields: Mapping[str, Field], context: Context) -> Callable[[Any, str], None]:
    """What `del self.name` does."""
    journal = context.journal

    def delete_field(cell: Any, name: str) -> None:
        held = cell.__dict__
        if name not in fields:
            raise _undeclared(owner, name)
        if fields[name].shape != "value":
            getattr(cell, name).clear()
            return
        for place in (name, f"@{name}"):
            if place in held:
                journal.append((put_back, held, place, held.pop(place)))

    return delete_field


def _put_both_back(held: dict[str, Any], name: str, old: Any, mark: str, until: Any) -> None:
    put_back(held, name, old)
    put_back(held, mark, until)


def undo(context: Context) -> None:
    """Take back what a call wrote and forget what else it wanted."""
    for back, *place in reversed(context.journal):
        back(*place)
    context.journal.clear()
    context.effects.clear()


def forget(cell: KeyedFunction, fields: Mapping[str, Field], kind: TimeKind, clock: int) -> None:
    """Let go of the entries that have run out by one of the clocks."""
    held, soonest = cell.__dict__, MAX_TIME
    for name, field in fields.items():
        if field.ttl is None or field.ttl_by != kind or name not in held:
            continue
        if field.shape == "value":
            if held[f"@{name}"] <= clock:
                del held[name], held[f"@{name}"]
            else:
                soonest = min(soonest, held[f"@{name}"])
        else:
            soonest = min(soonest, held[name].forget(clock))
    if kind == "event":
        held["@"] = soonest


class _Empty:
    """A list or map that a cell does not have yet: made when it is first asked for."""

    def __init__(self, name: str, field: Field, context: Context) -> None:
        self.name, self.field, self.context = name, field, context

    def __get__(self, cell: KeyedFunction | None, owner: type) -> Any:
        return self if cell is None else view(cell, self.name, self.field, self.context)


def view(cell: KeyedFunction, name: str, field: Field, context: Context) -> Any:
    """An empty list or map of a cell."""
    made = (Items if field.shape == "items" else Entries)(cell.__dict__, name, field, context)
    cell.__dict__[name] = made
    return made


def _undeclared(owner: str, name: str) -> Refused:
    return Refused(
        f"{owner} set self.{name}",
        "it is not a field, and nothing else lasts",
        f"declare {name} = ps.value(…) in the class",
    )
