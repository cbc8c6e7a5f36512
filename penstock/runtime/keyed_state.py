"""How does a function reach the state of the key at hand: as attributes, whose every write is checked and journaled.

A cell is an instance of the user's class for one key. Its `__dict__` is the key's state: a value by its name, a list
or map by its name as a view; `@name` says until when a value lasts, and `@` a time before which nothing of the cell
runs out by event time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.plan.operators.process import Field, KeyedFunction, TimeKind, fields_of
from penstock.runtime.process_context import Context, Refused
from penstock.runtime.process_state import GONE, Entries, Items, checker, put_back
from penstock.types.timestamps import MAX_TIME


def remembering(function: KeyedFunction, context: Context) -> type[KeyedFunction]:
    """The class of a function's cells: what the function was made with is theirs in common, its fields are not."""
    kind, fields = type(function), fields_of(function)
    body: dict[str, Any] = {name: staticmethod(held) if hasattr(held, "__get__") else held
                            for name, held in vars(function).items()}  # fmt: skip
    for name, field in fields.items():
        body[name] = _Empty(name, field, context)
        if field.shape == "value":
            default = field.default
            body[name] = None if default is None else checker(f"self.{name}", field.type)(default)
    metaclass: Any = type(kind)
    made: type[KeyedFunction] = metaclass(kind.__name__, (kind,), {
        **body, "__setattr__": _setter(kind.__name__, fields, context),
        "__delattr__": _deleter(kind.__name__, fields, context),
    })  # fmt: skip
    return made


def _setter(owner: str, fields: Mapping[str, Field], context: Context) -> Callable[[Any, str, Any], None]:
    """What `self.name = value` does; values without a ttl, and those with one, have short ways of their own."""
    journal, delete = context.journal, _deleter(owner, fields, context)
    values = {name: field for name, field in fields.items() if field.shape == "value"}
    plain = {name: checker(f"self.{name}", field.type) for name, field in values.items() if field.ttl is None}
    lasting = {name: (checker(f"self.{name}", field.type), f"@{name}", field.ttl, field.ttl_by == "event")
               for name, field in values.items() if field.ttl is not None}  # fmt: skip

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
        raise Refused(f"self.{name} was given None", "it has a default, which a cleared value shows",
                      f"write del self.{name}, or declare it without a default")  # fmt: skip
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
    return Refused(f"{owner} set self.{name}", "it is not a field, and nothing else lasts",
                   f"declare {name} = ps.value(…) in the class")  # fmt: skip
