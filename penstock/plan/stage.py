"""What remembers beyond a window: a stage has sides, from which rows come, and an operator, which says what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.errors import PlanError
from penstock.plan.stages import Entry, Input
from penstock.types.schema import Column, Schema

MAIN = "rows"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the streams that meet in a stage: its name there, its columns, and what it is keyed by.

    Rows of a `signed` one may be withdrawn: they come with +1 and -1. Those of one that is `everywhere` go to every
    shard.
    """

    name: str
    schema: Schema
    keys: tuple[str, ...]
    signed: bool = False
    everywhere: bool = False

    @property
    def key_schema(self) -> Schema:
        """The columns it is keyed by."""
        return Schema(tuple(Column(name, self.schema.type_of(name, "key_by")) for name in self.keys))


def refuse_lists(what: str, sides: Sequence[Side]) -> None:
    """Refuse lists in rows that may be withdrawn, where the one that is must be found among others."""
    for side in sides:
        lists = [column.name for column in side.schema.columns if column.type.startswith("array<")]
        if side.signed and lists:
            raise PlanError(
                f"{what} over rows that may be withdrawn, with a list {lists[0]!r} in them",
                "the row that is withdrawn is found by its values, and lists are not compared",
                f"leave it out: .select(...) without {lists[0]!r}",
            )


class Operator:
    """The rule of a stage, without its memory; every kind is a frozen dataclass."""

    __slots__ = ()

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Raise what cannot be right; return warnings of what is costly or surprising."""
        raise NotImplementedError

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """What it gives, by name, each with its columns; the main output is first and is called `rows`."""
        raise NotImplementedError

    def corrects(self, sides: Sequence[Side]) -> bool:
        """Whether it takes back what it gave of a row that is withdrawn."""
        return False

    def withdraws(self, sides: Sequence[Side]) -> bool:
        """Whether what it gives may be taken back by a -1."""
        return any(side.signed for side in sides)

    def identity(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """The columns that identify a row of its main output among those that stand; none where nothing does."""
        return ()

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """What it keeps and when it lets go, in words."""
        raise NotImplementedError

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """What of it may not change while a checkpoint lives: whatever decides what is stored."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class RowStage:
    """A stage that gives rows: what it is called, the streams that meet in it, and what it does."""

    label: str
    entries: tuple[Entry, ...]
    operator: Operator

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Where all of its rows come from."""
        return tuple(one for entry in self.entries for one in entry.inputs)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Its streams as the operator sees them."""
        return tuple(
            Side(one.name, one.schema, one.keys, one.signed, one.dealt == "everywhere") for one in self.entries
        )

    @property
    def outputs(self) -> dict[str, Schema]:
        """What it gives, by name."""
        return self.operator.outputs(self.sides)

    def withdraws(self, output: str = MAIN) -> bool:
        """Whether a row that an output gives may be taken back by a -1."""
        return self.operator.withdraws(self.sides)

    @property
    def bounded(self) -> bool:
        """Whether all that it reads comes to an end."""
        return all(one.source.bounded for one in self.inputs)

    def with_entries(self, entries: tuple[Entry, ...]) -> RowStage:
        """The same over other inputs."""
        return replace(self, entries=entries)
