"""How stages follow one another: all that a pipeline needs, each after those whose rows it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.errors import PlanError
from penstock.plan.stages import Derived, Input, Plan, RowStage, Source

AnyStage = Plan | RowStage


class Feed(NamedTuple):
    """Where rows go: to which stage, to which of its entries, by way of which input."""

    stage: int
    entry: int
    input: Input


@dataclass(frozen=True, slots=True)
class Flow:
    """The stages of a pipeline, in an order in which each comes after those it reads."""

    stages: tuple[AnyStage, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """One input for each source."""
        found: dict[str, Input] = {}
        for feed in self.feeds():
            if feed.input.source.derived is None:
                found.setdefault(feed.input.source.name, feed.input)
        return tuple(found.values())

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the stages: each by its place and what it is."""
        return tuple(f"{number}: {stage.label}" for number, stage in enumerate(self.stages, 1))

    @property
    def bounded(self) -> bool:
        """Whether every source comes to an end."""
        return all(one.source.bounded for one in self.inputs)

    def feeds(self) -> Iterator[Feed]:
        """Every way by which rows reach a stage."""
        for number, stage in enumerate(self.stages):
            for place, entry in enumerate(stage.entries):
                for one in entry.inputs:
                    yield Feed(number, place, one)

    def fed_by(self, source: str) -> tuple[Feed, ...]:
        """Where the rows of a source go."""
        return tuple(
            feed for feed in self.feeds() if feed.input.source.derived is None and feed.input.source.name == source
        )

    def fed_from(self, number: int, output: str) -> tuple[Feed, ...]:
        """Where the rows of a stage's output go."""
        wanted = Derived(self.stages[number], output)
        return tuple(feed for feed in self.feeds() if feed.input.source.derived == wanted)

    def above(self, number: int) -> tuple[int, ...]:
        """The stages whose rows a stage reads."""
        read = [one.source.derived for one in self.stages[number].inputs]
        return tuple(sorted({self.stages.index(one.stage) for one in read if one is not None}))

    def own_sources(self, number: int) -> frozenset[str]:
        """The sources that a stage reads itself."""
        return frozenset(one.source.name for one in self.stages[number].inputs if one.source.derived is None)

    def waits_for(self, number: int) -> tuple[frozenset[str], tuple[int, ...]]:
        """The sources and the stages whose watermarks a stage's own waits for: not those of tables and rules."""
        read = [one.source for entry in self.stages[number].entries if entry.waited for one in entry.inputs]
        stages = {self.stages.index(one.derived.stage) for one in read if one.derived is not None}
        return frozenset(one.name for one in read if one.derived is None), tuple(sorted(stages))

    @property
    def waited(self) -> frozenset[str]:
        """The sources that a watermark of some stage waits for."""
        return frozenset().union(*(self.waits_for(number)[0] for number in range(len(self.stages))))

    def unread(self) -> Flow:
        """The same without the readers, which stay where the rows are read."""
        return self.rebuilt(lambda one: replace(one, source=replace(one.source, reader=None)))

    def rebuilt(self, made: Callable[[Input], Input]) -> Flow:
        """The same with other inputs in the place of those that are read from sources."""
        new: dict[int, AnyStage] = {}

        def of(one: Input) -> Input:
            held = one.source.derived
            if held is None:
                return made(one)
            stage = new[self.stages.index(held.stage)]
            return replace(one, source=replace(one.source, derived=Derived(stage, held.output)))

        for number, stage in enumerate(self.stages):
            entries = tuple(replace(entry, inputs=tuple(of(one) for one in entry.inputs)) for entry in stage.entries)
            new[number] = stage.with_entries(entries)
        return Flow(tuple(new.values()))


def flow_of(wanted: Iterable[AnyStage]) -> Flow:
    """The stages that are wanted, and all that these read."""
    found: list[AnyStage] = []

    def visit(stage: AnyStage) -> None:
        if stage in found:
            # Stages may be equal in all but who reads their sources, as two tables of one name.
            for one, other in zip(found[found.index(stage)].inputs, stage.inputs, strict=True):
                _refuse_two_sources(one.source, other.source)
            return
        for one in stage.inputs:
            if one.source.derived is not None:
                visit(one.source.derived.stage)
        found.append(stage)

    for stage in wanted:
        visit(stage)
    flow = Flow(tuple(found))
    _refuse_two_clocks(flow)
    return flow


def _refuse_two_sources(one: Source, other: Source) -> None:
    """A name is that of one source, which is read in one way."""
    if one != other or (one.reader is not other.reader and one.reader != other.reader):
        raise PlanError(
            f"two sources are called {other.name!r}",
            "partitions are told apart by the name of their source",
            'name them: ps.events(..., name="clicks")',
        )


def _refuse_two_clocks(flow: Flow) -> None:
    """A source has one event time, whoever reads it."""
    first = {one.source.name: one for one in flow.inputs}
    for feed in flow.feeds():
        one = feed.input
        if one.source.derived is not None:
            continue
        other = first[one.source.name]
        _refuse_two_sources(other.source, one.source)
        if (other.before, other.time) != (one.before, one.time):
            raise PlanError(
                f"the source {one.source.name!r} has two event times in one pipeline",
                "its watermark follows one column by one rule, and is the same for all that read it",
                "call .event_time(...) once, and begin both branches from what it gives",
            )
