"""What someone at a terminal sees while a pipeline runs: one panel, kept up to date."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.api.progress import Progress
from penstock.cli.progress import Rate, farewell, held, shares
from penstock.humanize import clock, many, span

if TYPE_CHECKING:
    from penstock.spark.handle import Ended

WIDEST = 100


@dataclass
class LivePanel:
    """A panel on the screen; what the pipeline prints itself scrolls by above it."""

    name: str
    checkpoint: str
    console: Console
    below: RenderableType | None = None
    last: Progress | None = None
    rate: Rate = field(default_factory=Rate)
    speed: float = 0.0
    began: float = field(default_factory=time.monotonic)
    live: Live | None = None
    stopped: bool = False

    def begin(self) -> None:
        """Show that Spark is being started."""
        self.began = time.monotonic()
        self.live = Live(console=self.console, refresh_per_second=4, get_renderable=self.shown)
        self.live.start()

    def progress(self, progress: Progress) -> None:
        """Take the new numbers; the screen is painted by a thread of its own."""
        if progress.waiting is None:
            self.speed = self.rate.with_batch(progress)
        self.last = progress

    def stopping(self) -> None:
        """Show that the stop was heard."""
        self.stopped = True

    def end(self, ended: Ended | None) -> None:
        """Leave the last numbers on the screen and say how it ended."""
        if self.live is not None:
            if self.last is None:
                self.live.transient = True
            self.live.stop()
            self.live = None
        if ended is not None:
            first, *unread = farewell(self.name, ended).split("\n")
            self.console.print(Text(first, "green"))
            for said in unread:
                self.console.print(Text(said, "bold yellow"))

    def shown(self) -> RenderableType:
        """What is on the screen now."""
        if self.last is None:
            waited = span((time.monotonic() - self.began) * 1e6)
            if self.stopped:
                return Spinner("dots", Text(f"stopping after the first batch ({waited})"))
            return Spinner("dots", Text(f"starting Spark, then the first batch: some ten to twenty seconds ({waited})"))
        panel = self._panel(self.last)
        return panel if self.below is None else Group(panel, self.below)

    def _panel(self, progress: Progress) -> Panel:
        return Panel(
            numbers(progress, self.speed),
            title=Text(f"{self.name}, running for {span((time.monotonic() - self.began) * 1e6)}", "bold"),
            subtitle=Text("stopping after this batch" if self.stopped else "Ctrl-C stops after the batch", "dim"),
            title_align="left",
            subtitle_align="right",
            width=min(self.console.width, WIDEST),
            border_style="blue",
        )


def numbers(progress: Progress, speed: float) -> Table:
    """The numbers of a run, two to a line."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    totals = progress.totals
    table.add_row("events", f"{totals.read:,}", f"{speed:,.0f} a second")
    table.add_row("watermark", clock(progress.watermark), _behind(progress))
    table.add_row("state", held(progress), f"{many(progress.total_panes, 'pane')} shown")
    table.add_row("late", f"{totals.late:,}", "rows that came after their window was gone" if totals.late else "")
    table.add_row("quarantined", f"{totals.quarantined:,}", "rows that could not be used" if totals.quarantined else "")
    if totals.deduplicated:
        table.add_row("duplicates", f"{totals.deduplicated:,}", "rows that said the same twice")
    if progress.lag is not None:
        table.add_row("lag", f"{progress.lag:,}", "rows in the log beyond this batch" if progress.lag else "")
    table.add_row("batch", f"{progress.batch:,}", f"{span(progress.seconds * 1e6)}, {shares(progress)}")
    for note in progress.notes:
        table.add_row("note", "", Text(note, "yellow"))
    if progress.waiting is not None:
        table.add_row("waiting", Text(span(progress.elapsed * 1e6), "bold yellow"), Text(progress.waiting, "yellow"))
    return table


def _behind(progress: Progress) -> str:
    if progress.behind is None:
        return ""
    waits = "" if progress.laggard is None else f", slowest {progress.laggard}"
    return f"{span(progress.behind)} behind the clock{waits}"
