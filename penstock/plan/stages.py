"""The frozen plan: everything a pipeline was asked for, comparable and printable, with nothing run yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from penstock.errors import PlanError
from penstock.model.aggregates import Aggregate
from penstock.model.panes import Mode
from penstock.model.triggers import AtWatermark, Trigger
from penstock.model.watermarks import TimeBase, by_hand
from penstock.model.windows import WindowRule
from penstock.plan.row_steps import RowStep
from penstock.types.schema import Column, Schema


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: a name, what a row is made of, how many bad ones are borne, and who reads them."""

    name: str
    schema: Schema
    bounded: bool = False
    max_bad: MaxBad | None = None
    reader: Any = field(default=None, compare=False)
    derived: Derived | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """An output of another stage, whose rows are read as those of a source."""

    stage: Plan | RowStage
    output: str

    def source(self) -> Source:
        """The rows as a source."""
        return Source(
            f"{self.stage.label}.{self.output}", self.stage.outputs[self.output], self.stage.bounded, derived=self
        )

    def input(self) -> Input:
        """The rows as the input of another stage; they have their event time."""
        return Input(self.source(), time=TimeBase("derived", None, None, by_hand(max_skew=None)))

    @property
    def withdraws(self) -> bool:
        """Whether a row that was given may be taken back by a -1."""
        return self.stage.withdraws(self.output)


@dataclass(frozen=True, slots=True)
class MaxBad:
    """How many rows may be quarantined before the run stops: a number, or a share of what was read."""

    rows: int | None
    share: float | None

    def exceeded(self, bad: int, read: int) -> bool:
        """A number is exact; a share is looked at once a hundred rows were read. A row may fail in several stages."""
        if self.rows is not None:
            return bad > self.rows
        return not self.all and self.share is not None and read >= 100 and bad > self.share * read

    @property
    def all(self) -> bool:
        """Whether every row may be quarantined."""
        return self.share == 1

    def __str__(self) -> str:
        return f"{self.rows} rows" if self.rows is not None else f"{100 * (self.share or 0):g}% of the rows"


ALL = MaxBad(None, 1.0)


def max_bad_of(limit: int | str | None) -> MaxBad | None:
    """How many bad rows are borne, as it is written: a number, or a share in percent."""
    if limit is None:
        return None
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return MaxBad(limit, None)
    text = str(limit)
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else None
    except ValueError:
        share = None
    if share is None or not 0 <= share <= 1:
        raise PlanError(
            f"max_bad is {limit!r}",
            "it is a number of rows, or a share of them in percent",
            'write max_bad=100 or max_bad="1%"',
        )
    return MaxBad(None, share)


@dataclass(frozen=True, slots=True)
class Input:
    """One source on its way to a stage: row steps, its clock, more row steps."""

    source: Source
    before: tuple[RowStep, ...] = ()
    time: TimeBase | None = None
    after: tuple[RowStep, ...] = ()

    @property
    def stamped_schema(self) -> Schema:
        """The columns at the point where event time is read."""
        held = self.source.schema
        for step in self.before:
            held = step.output(held)
        return held

    @property
    def schema(self) -> Schema:
        """The columns that reach the window."""
        held = self.stamped_schema
        for step in self.after:
            held = step.output(held)
        return held

    @property
    def signed(self) -> bool:
        """Whether its rows come with +1 and -1: what it reads may take rows back."""
        return self.source.derived is not None and self.source.derived.withdraws


Dealt = Literal["by key", "evenly", "everywhere"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One of the streams that meet in a stage: its name there, where its rows come from, and what it is keyed by.

    `dealt` says which shards its rows go to; `waited` whether the stage's watermark waits for it.
    """

    name: str
    inputs: tuple[Input, ...]
    keys: tuple[str, ...]
    dealt: Dealt = "by key"
    waited: bool = True

    @property
    def schema(self) -> Schema:
        """The columns of its rows."""
        return self.inputs[0].schema

    @property
    def signed(self) -> bool:
        """Whether its rows come with +1 and -1."""
        return any(one.signed for one in self.inputs)


PANES = "panes"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is computed, where in event time, when it is emitted, and how results relate."""

    inputs: tuple[Input, ...]
    keys: tuple[str, ...]
    window: WindowRule
    lateness: int
    trigger: Trigger
    mode: Mode | None
    aggregates: tuple[tuple[str, Aggregate], ...]

    @property
    def schema(self) -> Schema:
        """The columns of a row that reaches the window."""
        return self.inputs[0].schema

    @property
    def key_schema(self) -> Schema:
        return Schema(tuple(Column(name, self.schema.type_of(name, "key_by")) for name in self.keys))

    @property
    def result_schema(self) -> Schema:
        """The aggregates' columns."""
        held = self.schema
        return Schema(tuple(Column(name, aggregate.result_type(held, name)) for name, aggregate in self.aggregates))

    @property
    def label(self) -> str:
        """What it is called among the stages of a flow."""
        return "windows"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Windows have one stream of rows."""
        return (Entry("rows", self.inputs, self.keys),)

    def with_entries(self, entries: tuple[Entry, ...]) -> Plan:
        """The same over other inputs."""
        return replace(self, inputs=entries[0].inputs)

    @property
    def outputs(self) -> dict[str, Schema]:
        """The columns of a pane as the next stage sees them."""
        window = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))
        pane = (Column("pane_index", "long"), Column("pane_timing", "string"), Column("pane_final", "boolean"))
        return {PANES: Schema((*self.key_schema.columns, *window, *self.result_schema.columns, *pane))}

    def unread(self) -> Plan:
        """The same plan without its readers, which stay where the rows are read."""
        inputs = tuple(replace(one, source=replace(one.source, reader=None)) for one in self.inputs)
        return replace(self, inputs=inputs)

    @property
    def bounded(self) -> bool:
        """Whether every source comes to an end."""
        return all(source.source.bounded for source in self.inputs)

    @property
    def fires_once(self) -> bool:
        """Whether each window shows one pane at most, when it expires."""
        return (self.lateness == 0 and _plain(self.trigger)) or self.trigger.only_at_expiry

    @property
    def shown_mode(self) -> Mode:
        """The mode; where a window fires once they are all the same."""
        return self.mode or "accumulating"

    @property
    def signed(self) -> bool:
        """Whether a record may be withdrawn: rows come with +1 and -1."""
        return any(one.signed for one in self.inputs)

    @property
    def pieces(self) -> bool:
        """Whether a pane is a piece, which is the whole only with the others of its window."""
        return self.shown_mode == "discarding" and not self.fires_once

    def withdraws(self, output: str = PANES) -> bool:
        """Whether a pane may be taken back by a -1."""
        return not self.fires_once and (self.shown_mode == "retracting" or self.window.merging)


def _plain(trigger: Trigger) -> bool:
    """Whether nothing but completion makes the trigger ready, so that without lateness it fires at expiry alone."""
    return isinstance(trigger, AtWatermark) and trigger.early is None


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
