"""A pipeline played by hand: batches of rows, a processing clock to move, a watermark to give, panes to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.api.stream import Rows as Given
from penstock.api.windowed import Panes
from penstock.errors import CaseError, did_you_mean
from penstock.model.panes import Given as GivenRow, Late, Pane, Quarantined
from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import MAIN, Input, Plan
from penstock.runtime.batch import Arrival, Counts, Outcome, PartitionClock, Tick
from penstock.testing.engines import start
from penstock.testing.expectations import (
    late_facts,
    late_names,
    mismatches,
    pane_facts,
    pane_names,
    quarantined_facts,
    quarantined_names,
    row_facts,
    row_names,
    wanted_bad,
    wanted_given,
    wanted_pane,
    wanted_row,
)
from penstock.testing.script_arguments import (
    MARKS,
    Row,
    checked_expected,
    checked_instant,
    checked_marks,
    checked_partitions,
    checked_plan,
    checked_rows,
)
from penstock.testing.tables import pane_table, pane_types, row_types
from penstock.types.timestamps import MAX_TIME, event_time_of
from penstock.types.validate import decode

Rows = str | Sequence[Row]


class Script:
    """One pipeline, played batch by batch on one engine.

    Until a batch says `now`, the processing clock follows the newest event time played.
    """

    def __init__(
        self, panes: Panes | Given | AnyStage, engine: str = "reference", *, partitions: Sequence[str] = ()
    ) -> None:
        self.stage = checked_plan(panes)
        self.flow = flow_of((self.stage,))
        self.engine = engine
        self.run = start(self.stage, engine)
        self.panes: list[Pane] = []
        self.rows: list[GivenRow] = []
        self.late: list[Late] = []
        self.quarantined: list[Quarantined] = []
        self.watchers: list[Callable[[list[Arrival], Outcome], None]] = []  # told of every batch once it is played
        self._known = tuple(self._partition(name) for name in checked_partitions(partitions))
        self._offsets: dict[tuple[str, str], int] = {}
        self._seen = 0
        self._seen_rows: dict[str, int] = {}
        self._seen_late = 0
        self._seen_bad = 0
        self._clock_set = False
        self._ended = False
        self._unread = [one for one in self.flow.inputs if hasattr(one.source.reader, "kept_under")]

    def batch(
        self,
        rows: Rows = (),
        *,
        partition: str | None = None,
        now: str | int | None = None,
        watermark: str | int | None = None,
    ) -> Outcome:
        """Play one batch; a row may name its place with "@partition" and "@source"."""
        table = checked_rows(rows, self.stage)
        at = None if watermark is None else checked_instant(watermark, "watermark")
        moment = None if now is None else checked_instant(now, "now")
        before = dict(self._offsets)
        try:
            arrivals = [self._arrival(row, partition) for row in table]
        except CaseError:
            self._offsets = before  # a batch that is refused has read nothing
            raise
        if arrivals and self._ended:
            raise CaseError(
                "rows after the end of the input",
                "the end says that nothing comes any more, and every window has been closed for it",
                'play the rows before .end(), or give an infinite watermark with .watermark("+inf")',
            )
        return self._play(arrivals, Tick(self._now(moment, arrivals), at, self._known))

    def advance(self, now: str | int) -> Outcome:
        """Move the processing clock, with nothing arriving."""
        return self.batch((), now=checked_instant(now, "now"))

    def watermark(self, at: str | int, *, now: str | int | None = None) -> Outcome:
        """Give a watermark by hand, with nothing arriving."""
        return self.batch((), now=now, watermark=checked_instant(at, "at"))

    def end(self, *, now: str | int | None = None) -> Outcome:
        """The end of the input: W is infinite, each stage gives what it has left, and no more rows are taken.

        There is a batch for each stage, for W is infinite in one after the other; the outcome is that of the last.
        """
        for _ in self.flow.stages:
            outcome = self.batch((), now=now, watermark=MAX_TIME)
        self._ended = True
        return outcome

    def resume(self, now: str | int) -> Outcome:
        """The first batch after an outage: the time in between counts for no partition's silence."""
        return self._play([], Tick(self._now(checked_instant(now, "now"), ()), None, self._known, resumed=True))

    def restart(self) -> None:
        """Forget everything and go on from the snapshot, as after a crash between two batches."""
        snapshot = self.run.snapshot()
        self.run = start(self.stage, self.engine)
        self.run.restore(snapshot)

    @property
    def plan(self) -> Plan:
        """The windows that are played."""
        if isinstance(self.stage, Plan):
            return self.stage
        raise CaseError(
            f"{self.stage.label} has no panes",
            "panes are of windows; other stages give rows",
            "write expect_rows(...), and read .rows",
        )

    @property
    def W(self) -> int:  # noqa: N802 - the book's name
        """The watermark of the batch to come."""
        return self.run.watermark

    @property
    def counts(self) -> Counts:
        """Where every row went so far."""
        return self.run.totals

    def partitions(self) -> dict[str, PartitionClock]:
        """The clock of each partition, by name (source/partition where there are several sources)."""
        several = len(self.flow.inputs) > 1
        return {f"{p.source}/{p.partition}" if several else p.partition: p for p in self.run.partitions()}

    @property
    def laggard(self) -> str | None:
        """The active partition that holds the watermark back."""
        active = {name: clock for name, clock in self.partitions().items() if not clock.idle}
        return min(active, key=lambda name: active[name].watermark) if len(active) > 0 else None

    def expect(self, *expected: str | Row) -> None:
        """The panes since the last look are exactly these, in any order; a pane may be given in part."""
        names = pane_names(self.plan)
        wanted = checked_expected(expected, "expect", pane_types(self.plan), names)
        fresh, self._seen = self.panes[self._seen :], len(self.panes)
        facts = [pane_facts(self.plan, pane) for pane in fresh]
        wrong = mismatches(facts, [wanted_pane(self.plan, row) for row in wanted], "pane", names)
        if wrong:
            raise AssertionError(f"{wrong}\nthe panes were:\n{pane_table(self.plan, fresh)}")

    def expect_rows(self, *expected: str | Row, output: str = MAIN) -> None:
        """The rows that the stage gave to an output since the last look are exactly these, in any order."""
        names, schema = row_names(self.stage, output), self.stage.outputs[output]
        types = {column.name: column.type for column in schema.columns}
        wanted = checked_expected(expected, "expect_rows", types, names)
        mine = [row for row in self.rows if row.output == output]
        fresh, self._seen_rows[output] = mine[self._seen_rows.get(output, 0) :], len(mine)
        facts = [row_facts(row) for row in fresh]
        wrong = mismatches(facts, [wanted_given(schema, row) for row in wanted], "row", names)
        if wrong:
            raise AssertionError(f"{wrong}\nthe rows were: {facts}")

    def expect_late(self, *expected: str | Row) -> None:
        """The late rows since the last look are exactly these, in any order; a row may be given in part."""
        names = late_names(self.stage)
        wanted = checked_expected(expected, "expect_late", row_types(self.stage), names)
        fresh, self._seen_late = self.late[self._seen_late :], len(self.late)
        facts = [late_facts(late) for late in fresh]
        wrong = mismatches(facts, [wanted_row(self.stage, row) for row in wanted], "late row", names)
        if wrong:
            raise AssertionError(f"{wrong}\nthe late rows were: {[str(late) for late in fresh]}")

    def expect_quarantined(self, *expected: str | Row) -> None:
        """The quarantined rows since the last look are exactly these; a row, and its reason, may be given in part."""
        names = quarantined_names(self.stage)
        wanted = checked_expected(expected, "expect_quarantined", row_types(self.stage), names)
        fresh, self._seen_bad = self.quarantined[self._seen_bad :], len(self.quarantined)
        facts = [quarantined_facts(self.stage, bad) for bad in fresh]
        wrong = mismatches(facts, [wanted_bad(self.stage, row) for row in wanted], "quarantined row", names)
        if wrong:
            raise AssertionError(f"{wrong}\nthe quarantined rows were: {fresh}")

    def show(self) -> str:
        """All panes so far, as a table."""
        return pane_table(self.plan, self.panes)

    def assert_conserved(self) -> None:
        """Nothing was lost: every row read is filtered, quarantined, late, or in a window that was shown or is open."""
        if not self.counts.conserved(self.run.open_records()):
            raise AssertionError(f"rows were lost: {self.counts}, {self.run.open_records()} records in open windows")

    def _play(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        read = [*self._tables(), *arrivals]
        outcome = self.run.batch(read, tick)
        self.panes += outcome.panes
        self.rows += outcome.rows
        self.late += outcome.late
        self.quarantined += outcome.quarantined
        self.assert_conserved()
        for watcher in self.watchers:
            watcher(read, outcome)
        return outcome

    def _tables(self) -> list[Arrival]:
        """The rows of tables that are read whole, in the first batch; to take one back, play it with its mark."""
        unread, self._unread = self._unread, []
        rows = [{**row, "@source": one.source.name} for one in unread for row in one.source.reader.rows()]
        return [self._arrival(row, None) for row in rows]

    def _arrival(self, row: Row, partition: str | None) -> Arrival:
        checked_marks(row, MARKS)
        said = row.get("@source")
        place = str(row.get("@partition", partition or "0"))
        source, name = self._partition(place, None if said is None else str(said))
        one = self._input(source)
        values = {column: value for column, value in row.items() if column not in MARKS}
        for column, value in list(values.items()):
            if column not in one.source.schema.names:
                if value is None and len(self.flow.inputs) > 1:
                    del values[column]  # one table for several sources has columns of them all
                    continue
                raise CaseError(
                    f"the row has a column {column!r}, which the source {source!r} has not",
                    f"its columns are: {', '.join(one.source.schema.names)}",
                    did_you_mean(str(column), one.source.schema.names),
                )
        offset = self._offsets.get((source, name), 0)
        self._offsets[source, name] = offset + 1
        decoded, bad = decode(values, one.source.schema)
        return Arrival(source, name, offset, decoded, bad)

    def _partition(self, name: str, source: str | None = None) -> tuple[str, str]:
        sources = [one.source.name for one in self.flow.inputs]
        if source is None and "/" in name and name.split("/", 1)[0] in sources:
            source, name = name.split("/", 1)
        return source or sources[0], name

    def _input(self, source: str) -> Input:
        for one in self.flow.inputs:
            if one.source.name == source:
                return one
        raise CaseError(
            f"there is no source {source!r}",
            "a row comes from one of the plan's sources",
            did_you_mean(source, [one.source.name for one in self.flow.inputs]),
        )

    def _now(self, now: int | None, arrivals: Sequence[Arrival]) -> int | None:
        if now is not None:
            self._clock_set = True
            return now
        if self._clock_set:
            return None
        times = [time for arrival in arrivals for time in self._times(arrival)]
        return max(times, default=None)

    def _times(self, arrival: Arrival) -> list[int]:
        time = self._input(arrival.source).time
        if time is None or time.column is None or arrival.bad or time.column not in arrival.row:
            return []
        held = self._input(arrival.source).source.schema.type_of(time.column, "event_time")
        try:
            return [event_time_of(arrival.row[time.column], "us" if held == "timestamp" else time.unit)]
        except ValueError:
            return []
