"""Has a run used any of the rows that it has read: which are in quarantine, and why, until one is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from penstock.api.pipeline import Pipeline
from penstock.checkpoint.clock import Clocks
from penstock.coordinator.batch_result import Heard
from penstock.coordinator.messages import BAD
from penstock.diagnostics.user_functions import kind_of
from penstock.errors import TooManyBadRows
from penstock.humanize import harmless, many
from penstock.plan.graph import AnyStage
from penstock.plan.operators.match import Match
from penstock.plan.operators.process import Process
from penstock.plan.stages import RowStage
from penstock.runtime.batch import Counts

LEAST = 100  # rows from which on a run that goes on is judged by its own rows, and not by all that came before
SHOWN = 3
KINDS = 1_000  # of reasons that are told apart


@dataclass
class Unusable:
    """The rows of each source that a run has read, and those of them that are in quarantine.

    Once a row was used there is nothing to look for, so that a run with few bad rows does nothing here. Where a source
    feeds several stages, or a row becomes several, only all rows of all sources together can be judged.
    """

    pipeline: Pipeline
    checkpoint: str
    staging: str | None
    before: Clocks
    counts: Counts = field(default_factory=Counts)
    read: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        flow = self.pipeline.flow
        self.borne = {
            one.source.name for one in flow.inputs if one.source.max_bad is not None and one.source.max_bad.all
        }
        self.single = {one.source.name for one in flow.inputs if len(flow.fed_by(one.source.name)) == 1}
        # A stage that puts rows in order takes them in one batch and may refuse them in another.
        self.waits = any(_waits(stage) for stage in flow.stages)

    def batch(self, heard: Heard) -> None:
        """A batch more; its rows may still lie aside."""
        self.counts += heard.counts
        for source, (read, _) in heard.read.items():
            self.read[source] += read
        doubtful = {source for source, read in self.read.items() if read} - self.used - self.borne
        if doubtful:
            for table in self._tables(heard):
                self._count(table, doubtful)
            if not self.waits:
                self.used |= {source for source in doubtful if not self._unused(source)}

    def refusal(self, ended: str) -> TooManyBadRows | None:
        """What is said at the end of a run that could use no row of a source."""
        unused = [
            source
            for source in self.read.keys() - self.used - self.borne
            if self._unused(source) and self._judged(source)
        ]
        if not unused:
            return None
        rows = " and ".join(f"all {many(self.read[source], 'row')} of {source}" for source in sorted(unused))
        return TooManyBadRows(
            f"{ended}, and could use nothing: {rows} went to quarantine",
            f"most often: {self._reasons(unused)}; they are {self._place()}",
            f"look at them: penstock quarantine list {self.checkpoint}; mend the schema, the function or the producer, "
            'then replay them or begin with a new checkpoint; where this is meant, say max_bad="100%" '
            "(penstock run --max-bad 100%)",
        )

    def _unused(self, source: str) -> bool:
        if not self.read[source]:
            return False
        alone = source in self.single and not self.counts.added
        return self.counts.unusable or (alone and self.bad[source] >= self.read[source])

    def _judged(self, source: str) -> bool:
        """Whether its rows are enough; a run that goes on with a few is judged with those that came before."""
        read, bad = self.before.bad.get(source, (0, 0))
        return self.read[source] >= LEAST or bad >= read or self.before.totals.unusable

    def _tables(self, heard: Heard) -> Iterator[pa.Table]:
        for part in heard.streams.get(BAD, ()):
            if "staged" in part.head or part.payload:  # else a sink has taken the file as it is
                yield from part.tables(self.staging)

    def _count(self, table: pa.Table, doubtful: set[str]) -> None:
        for source in doubtful:
            mine = table.filter(pc.equal(table.column("source"), source))
            self.bad[source] += mine.num_rows
            steps = pc.binary_join_element_wise(mine.column("step"), mine.column("reason"), ": ")
            for found in pc.value_counts(steps).to_pylist():
                reason: str = found["values"]
                kind = source, kind_of(reason)
                if kind in self.kinds or len(self.kinds) < KINDS:
                    self.kinds[kind] += found["counts"]
                    self.examples.setdefault(kind, reason)

    def _reasons(self, sources: list[str]) -> str:
        of = Counter({kind: number for kind, number in self.kinds.items() if kind[0] in sources})
        texts = [f"{harmless(self.examples[kind])} ({many(number, 'row')})" for kind, number in of.most_common(SHOWN)]
        more = [f"and {many(len(of) - SHOWN, 'other reason')}"] if len(of) > SHOWN else []
        return "; ".join([*texts, *more]) or "the quarantine has the reason of each"

    def _place(self) -> str:
        sinks = [one.sink.describe() for one in self.pipeline.outputs if one.kind == "quarantine"]
        return f"written to {' and '.join(sinks)}" if sinks else f"kept under {self.checkpoint}/penstock/quarantine"


def _waits(stage: AnyStage) -> bool:
    rule = stage.operator if isinstance(stage, RowStage) else None
    return isinstance(rule, Match) or (isinstance(rule, Process) and rule.ordered)
