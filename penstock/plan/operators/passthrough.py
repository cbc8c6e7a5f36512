"""Rows as they are: the stage of a stream that is written without being windowed, joined or remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.plan.stages import MAIN, Operator, Side
from penstock.types.schema import Schema


@dataclass(frozen=True, slots=True)
class Pass(Operator):
    """Gives every row as it came; keeps nothing, and calls nothing late."""

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        return {MAIN: sides[0].schema}

    def corrects(self, sides: Sequence[Side]) -> bool:
        return True

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        return ("nothing",)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        return {}

    def __str__(self) -> str:
        return "rows as they are"
