"""What a stage does to its rows, short enough to compare: it tells stages apart that remember the same things.

It may change between two runs, as a `where` may; it only must not turn into that of another stage.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Set
from dataclasses import is_dataclass
from functools import partial
from types import CodeType
from typing import Any

from penstock.checkpoint.persisted_names import persisted_fields, persisted_name
from penstock.plan.graph import AnyStage
from penstock.plan.stages import Entry, Plan

MOST = 10_000  # so many values of users' objects are looked at
DEEPEST = 100  # and so many of them one in the other


def fingerprint_stage(stage: AnyStage) -> str:
    """What a stage does, then what is done to the rows of each of its sides before it."""
    rule: Any = stage.operator if not isinstance(stage, Plan) else (stage.window, stage.trigger, stage.aggregates)
    return ";".join(_digest(part) for part in (rule, *map(_steps, stage.entries)))


def _steps(entry: Entry) -> list[Any]:
    return [(way.source.name, way.before, way.after) for way in entry.inputs]


def _digest(value: Any) -> str:
    return hashlib.blake2b(_Describing().describe(value).encode(), digest_size=8).hexdigest()


class _Describing:
    """Values in words that are the same in every process: no address, no order of a set."""

    def __init__(self) -> None:
        self.left = MOST
        self.above: list[int] = []

    def describe(self, value: Any) -> str:
        """A value and all that it is made of; what contains itself, is too large or too deep, by its type alone."""
        self.left -= 1
        name = persisted_name(type(value))
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return f"{name} {value!r}"
        if self.left < 0 or len(self.above) > DEEPEST or id(value) in self.above:
            return name
        self.above.append(id(value))
        try:
            return f"{name}({', '.join(self._parts(value))})"
        finally:
            self.above.pop()

    def _parts(self, value: Any) -> Iterable[str]:
        if isinstance(value, (tuple, list)):
            return [self.describe(part) for part in value]
        if isinstance(value, (Set, Mapping)):
            pairs = value.items() if isinstance(value, Mapping) else value
            return sorted(self.describe(part) for part in pairs)
        if is_dataclass(value) and not isinstance(value, type):
            return [f"{name}={self.describe(part)}" for name, part in persisted_fields(value)]
        if isinstance(value, partial):
            return [self.describe(part) for part in (value.func, value.args, value.keywords)]
        if inspect.ismethod(value):
            return [self.describe(value.__func__), self.describe(value.__self__)]
        if inspect.isfunction(value):
            closed = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
            parts = (value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, closed)
            return [self.describe(part) for part in parts]
        if isinstance(value, CodeType):
            return [self.describe(part) for part in (value.co_code, value.co_names, value.co_consts)]
        if isinstance(value, type):
            return [persisted_name(value)]
        attributes = getattr(value, "__dict__", None)
        return [self.describe(attributes)] if isinstance(attributes, dict) else [str(value)] if _plain(value) else []


def _filled(cell: Any) -> bool:
    """Whether a function's variable has a value yet."""
    try:
        cell.cell_contents  # noqa: B018 - asked for what it raises
    except ValueError:
        return False
    return True


def _plain(value: Any) -> bool:
    """Whether what a value says of itself has no address in it, as numbers and times of the standard library."""
    return type(value).__module__ in ("decimal", "datetime", "fractions", "uuid")
