"""What is answered to a name that is not there, or to a call that does not fit: the line to write instead.

A newcomer writes what other libraries call it: written_elsewhere.py has the table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from penstock.diagnostics.other_libraries import CALLS, KINDS, LOOK, PACKAGE
from penstock.errors import PlanError, did_you_mean
from penstock.types.validate import shortened

_Class = TypeVar("_Class", bound=type)


class UnknownName(PlanError, AttributeError):
    """Something has no such name."""


class WrongCall(PlanError, TypeError):
    """Something is called with other arguments than it takes, or used as what it is not."""


def unknown_name(self: Any, name: str) -> Any:
    """A class's `__getattr__`: refuse a public name, and say what to write; others are asked for by Python itself."""
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    kind = next(base.__name__ for base in type(self).__mro__ if base.__name__ in KINDS)
    what, table = KINDS[kind]
    known = [public for public in dir(type(self)) if not public.startswith("_")]
    raise _refusal(what, f".{name}", name, known, table, _elsewhere(kind, name, self))


def unknown_in_package(name: str, known: Iterable[str]) -> AttributeError:
    """The refusal of a name that the package does not have."""
    if name.startswith("_"):
        return AttributeError(f"module 'penstock' has no attribute {name!r}")
    return _refusal(
        "penstock", f"ps.{name}", name, [f"ps.{public}" for public in known if not public.startswith("_")], PACKAGE, ""
    )


def in_words(value: Any) -> str:
    """What something is, on a short line: a stream would say all that it is made of."""
    ours = (base.__name__ for base in type(value).__mro__ if base.__module__.startswith("penstock."))
    kind = next((name for name in ours if name in KINDS), None)
    return shortened(repr(value), 100) if kind is None else KINDS[kind][0]


def not_rows(self: Any, place: Any) -> Any:
    """A class's `__getitem__`: rows are not at hand while a pipeline is only being written."""
    raise WrongCall(
        f"{KINDS[type(self).__name__][0]} was asked for [{place!r}], or for its rows one by one",
        "it says what will be done with rows when a pipeline runs, and has none in hand",
        f'name a column by text, as in .where("points > 10"), or ps.col("points"); to look at rows: {LOOK}',
    )


def explained(kind: _Class) -> _Class:
    """A class whose public methods explain a call that does not fit."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, explained_call(method, f".{name}"))
    return kind


def explained_call(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that explains a call that does not fit."""

    @wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        try:
            return function(*positional, **named)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None or isinstance(error, PlanError):
                raise  # it came from within
            raise _wrong_call(function, name, error) from None

    return called


def _wrong_call(function: Callable[..., Any], name: str, error: TypeError) -> WrongCall:
    taken = list(inspect.signature(function).parameters.values())
    if name.startswith(".") and taken and taken[0].name == "self":
        del taken[0]
    wrong = str(error).partition("() ")[2] or str(error)
    shown = ", ".join(_parameters(taken)) or "nothing"
    return WrongCall(f"{name}(…) {wrong}", f"it takes: {shown}", CALLS.get(name, f"write {name}({_example(taken)})"))


def _refusal(
    what: str, written: str, name: str, known: list[str], table: dict[str, str], elsewhere: str
) -> UnknownName:
    word = _plain(name)
    same = [public for public in known if _plain(public.removeprefix("ps.")) == word]
    if word in table or elsewhere or same:
        why = "other libraries call it so, or it is said elsewhere; here it is written otherwise"
        dot = "" if written.startswith("ps.") else "."
        return UnknownName(f"{what} has no {written}", why, f"write {table.get(word) or elsewhere or dot + same[0]}")
    why = f"it has: {', '.join(known)}" if len(known) <= 40 else "docs/api.md has all names"
    word = written if written.startswith("ps.") else name
    return UnknownName(f"{what} has no {written}", why, did_you_mean(word, known))


def _elsewhere(kind: str, name: str, self: Any) -> str:
    """Where a name is that another of the classes has, in the words of a line to write."""
    import penstock

    here = object.__getattribute__(self, "inputs")[0].schema.names if kind in ("Stream", "Rows") else ()
    if name in here:
        return f'the column by its name: "{name} > 10" in .where(…), or ps.col("{name}")'
    if not hasattr(penstock.Stream, name):
        return ""
    if kind == "Panes":
        return f".stream.{name}(…), for the next stage"
    return f".{name}(…) before .window(…)" if kind == "Windowed" else ""


def _parameters(taken: list[inspect.Parameter]) -> Iterable[str]:
    starred = False
    for parameter in taken:
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
            yield f"*{parameter.name}"
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            yield f"{parameter.name} by name"
            continue
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        if by_name and not starred:
            starred = True
            yield "and by name"
        yield parameter.name + ("" if parameter.default is parameter.empty else "=")


def _example(taken: list[inspect.Parameter]) -> str:
    needed = [parameter for parameter in taken if parameter.default is parameter.empty]
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    by_name = inspect.Parameter.KEYWORD_ONLY
    return ", ".join(f"{p.name}=…" if p.kind is by_name else p.name for p in needed if p.kind not in starred)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
