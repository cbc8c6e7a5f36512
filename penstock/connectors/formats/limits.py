"""How deep, how full and how long a row from outside may be: looked at in its bytes, before anything decodes them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from penstock.errors import PlanError

STANDARD = {"depth": 100, "items": 1_000_000, "size": 16 << 20}
MOST = {"depth": 500, "items": 100_000_000, "size": 1 << 30}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a line of JSON, or the value of a message in JSON or Avro, may be at most.

    `depth` is how deep lists and objects are nested, `items` how many values they have in all, `size` is bytes.
    """

    depth: int = STANDARD["depth"]
    items: int = STANDARD["items"]
    size: int = STANDARD["size"]

    def __post_init__(self) -> None:
        for one in fields(self):
            _refuse(one.name, getattr(self, one.name))


def _refuse(name: str, number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST[name]:
        raise PlanError(
            f"{name} is {number!r}",
            f"the {name} of a row is limited by a whole number from 1 to {MOST[name]:,}; the decoders take no more",
            f"write ps.Limits({name}={STANDARD[name]})",
        )


DEFAULT = Limits()


def limits_of(given: Any) -> Limits:
    """The limits that a source was given, or those that hold without."""
    if given is None:
        return DEFAULT
    if not isinstance(given, Limits):
        raise PlanError(
            f"limits is {given!r}",
            "it says how deep, how full and how long a row may be",
            "write limits=ps.Limits(depth=200), or leave it out",
        )
    return given
