"""A pipeline played by hand: batches of rows, a processing clock to move, a watermark to give, panes to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.batch import Arrival, Counts, Outcome, PartitionClock, Tick
from penstock.decode import decode
from penstock.errors import CaseError, did_you_mean
from penstock.instant import MAX_TIME, event_time_of, parse
from penstock.pane import Late, Pane, Quarantined
from penstock.plan import Input, Plan
from penstock.stream import Panes
from penstock.testing.engines import start
from penstock.testing.matching import (
    late_facts,
    mismatches,
    pane_facts,
    quarantined_facts,
    wanted_pane,
    wanted_row,
)
from penstock.testing.tables import pane_table, pane_types, read_table, row_types

Row = Mapping[str, Any]
Rows = str | Sequence[Row]


class Script:
    """One pipeline, played batch by batch on one engine.

    Until a batch says `now`, the processing clock follows the newest event time played.
    """

    def __init__(self, panes: Panes | Plan, engine: str = "reference", *, partitions: Sequence[str] = ()) -> None:
        self.plan = panes.plan if isinstance(panes, Panes) else panes
        self.engine = engine
        self.run = start(self.plan, engine)
        self.panes: list[Pane] = []
        self.late: list[Late] = []
        self.quarantined: list[Quarantined] = []
        self._known = tuple(self._partition(name) for name in partitions)
        self._offsets: dict[tuple[str, str], int] = {}
        self._seen = 0
        self._seen_late = 0
        self._seen_bad = 0
        self._clock_set = False
        self._ended = False

    def batch(self, rows: Rows = (), *, partition: str | None = None, now: str | int | None = None,
              watermark: str | int | None = None) -> Outcome:  # fmt: skip
        """Play one batch; a row may name its place with "@partition" and "@source"."""
        table = read_table(rows, row_types(self.plan)) if isinstance(rows, str) else rows
        arrivals = [self._arrival(row, partition) for row in table]
        if arrivals and self._ended:
            raise CaseError(
                "rows after the end of the input",
                "the end says that nothing comes any more, and every window has been closed for it",
                'play the rows before .end(), or give an infinite watermark with .watermark("+inf")',
            )
        tick = Tick(self._now(now, arrivals), None if watermark is None else parse(watermark), self._known)
        return self._play(arrivals, tick)

    def advance(self, now: str | int) -> Outcome:
        """Move the processing clock, with nothing arriving."""
        return self.batch((), now=now)

    def watermark(self, at: str | int, *, now: str | int | None = None) -> Outcome:
        """Give a watermark by hand, with nothing arriving."""
        return self.batch((), now=now, watermark=at)

    def end(self, *, now: str | int | None = None) -> Outcome:
        """The end of the input: W is infinite, every window shows what it has left, and no more rows are taken."""
        self._ended = True
        return self.batch((), now=now, watermark=MAX_TIME)

    def resume(self, now: str | int) -> Outcome:
        """The first batch after an outage: the time in between counts for no partition's silence."""
        return self._play([], Tick(self._now(now, ()), None, self._known, resumed=True))

    def restart(self) -> None:
        """Forget everything and go on from the snapshot, as after a crash between two batches."""
        snapshot = self.run.snapshot()
        self.run = start(self.plan, self.engine)
        self.run.restore(snapshot)

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
        several = len(self.plan.inputs) > 1
        return {f"{p.source}/{p.partition}" if several else p.partition: p for p in self.run.partitions()}

    @property
    def laggard(self) -> str | None:
        """The active partition that holds the watermark back."""
        active = {name: clock for name, clock in self.partitions().items() if not clock.idle}
        return min(active, key=lambda name: active[name].watermark) if len(active) > 0 else None

    def expect(self, *expected: str | Row) -> None:
        """The panes since the last look are exactly these, in any order; a pane may be given in part."""
        types = pane_types(self.plan)
        wanted = [row for part in expected for row in (read_table(part, types) if isinstance(part, str) else [part])]
        fresh, self._seen = self.panes[self._seen :], len(self.panes)
        wrong = mismatches(
            [pane_facts(self.plan, pane) for pane in fresh], [wanted_pane(self.plan, row) for row in wanted]
        )
        if wrong:
            raise AssertionError(f"{wrong}\nthe panes were:\n{pane_table(self.plan, fresh)}")

    def expect_late(self, *expected: Row) -> None:
        """The late rows since the last look are exactly these, in any order; a row may be given in part."""
        fresh, self._seen_late = self.late[self._seen_late :], len(self.late)
        wrong = mismatches([late_facts(late) for late in fresh], [wanted_row(self.plan, row) for row in expected])
        if wrong:
            raise AssertionError(f"{wrong}\nthe late rows were: {[str(late) for late in fresh]}")

    def expect_quarantined(self, *expected: Row) -> None:
        """The quarantined rows since the last look are exactly these; a row, and its reason, may be given in part."""
        fresh, self._seen_bad = self.quarantined[self._seen_bad :], len(self.quarantined)
        wrong = mismatches([quarantined_facts(bad) for bad in fresh], expected)
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
        outcome = self.run.batch(arrivals, tick)
        self.panes += outcome.panes
        self.late += outcome.late
        self.quarantined += outcome.quarantined
        self.assert_conserved()
        return outcome

    def _arrival(self, row: Row, partition: str | None) -> Arrival:
        source, name = self._partition(str(row.get("@partition", partition or "0")), row.get("@source"))
        one = self._input(source)
        values = {column: value for column, value in row.items() if not column.startswith("@")}
        for column in values:
            if column not in one.source.schema.names:
                raise CaseError(
                    f"the row has a column {column!r}, which the source {source!r} has not",
                    f"its columns are: {', '.join(one.source.schema.names)}",
                    did_you_mean(column, one.source.schema.names),
                )
        offset = self._offsets.get((source, name), 0)
        self._offsets[source, name] = offset + 1
        decoded, bad = decode(values, one.source.schema)
        return Arrival(source, name, offset, decoded, bad)

    def _partition(self, name: str, source: str | None = None) -> tuple[str, str]:
        sources = [one.source.name for one in self.plan.inputs]
        if source is None and "/" in name and name.split("/", 1)[0] in sources:
            source, name = name.split("/", 1)
        return source or sources[0], name

    def _input(self, source: str) -> Input:
        for one in self.plan.inputs:
            if one.source.name == source:
                return one
        raise CaseError(
            f"there is no source {source!r}",
            "a row comes from one of the plan's sources",
            did_you_mean(source, [one.source.name for one in self.plan.inputs]),
        )

    def _now(self, now: str | int | None, arrivals: Sequence[Arrival]) -> int | None:
        if now is not None:
            self._clock_set = True
            return parse(now)
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
