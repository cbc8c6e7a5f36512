"""What the demo shows while it runs: the numbers of any run, and below them the answers as they change."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.api.progress import Progress
from penstock.cli.demo.answers import Answer, current
from penstock.cli.progress import Lines

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.cli.progress_panel import LivePanel

MARKS = {"early": ("early", "yellow"), "on_time": ("on time", "green"), "late": ("corrected", "magenta")}
COLUMN = 18


@dataclass
class Lag:
    """How far the watermark was behind at most, once the start was over, and who was waited for."""

    behind: int = 0
    partition: str | None = None
    last: Progress | None = None

    def heard(self, progress: Progress) -> None:
        """Look at one batch."""
        self.last = progress
        if progress.behind is not None and progress.batch > 2 and progress.behind > self.behind:
            self.behind, self.partition = progress.behind, progress.laggard


@dataclass
class DemoPanel:
    """On a terminal: the live panel, and a table of the last windows below it."""

    panel: LivePanel
    database: Path
    lag: Lag = field(default_factory=Lag)

    def begin(self) -> None:
        """Show that Spark is being started."""
        self.panel.begin()

    def progress(self, progress: Progress) -> None:
        """New numbers, new answers."""
        self.lag.heard(progress)
        fitting = max(2, min(5, (self.panel.console.width - 10) // COLUMN))
        answers = current(self.database, fitting)
        self.panel.below = table(answers) if answers else None
        self.panel.progress(progress)

    def stopping(self) -> None:
        """Show that the stop was heard."""
        self.panel.stopping()

    def end(self, ended: Any) -> None:
        """Leave the last picture."""
        self.panel.end(ended)


@dataclass
class DemoLines:
    """Elsewhere: a line for what a batch changed in each window."""

    lines: Lines
    database: Path
    lag: Lag = field(default_factory=Lag)
    seen: dict[tuple[str, str], Answer] = field(default_factory=dict)

    def begin(self) -> None:
        """Say what is being started."""
        self.lines.begin()

    def progress(self, progress: Progress) -> None:
        """Say how it stands, and which windows have come to something new."""
        self.lag.heard(progress)
        self.lines.progress(progress)
        answers = current(self.database, 5)
        for line in changes(self.seen, answers):
            print(f"  {line}", file=self.lines.out, flush=True)
        self.seen = {(one.start, one.team): one for one in answers}

    def stopping(self) -> None:
        """Say that the stop was heard."""
        self.lines.stopping()

    def end(self, ended: Any) -> None:
        """Say how it ended."""
        self.lines.end(ended)


def changes(before: dict[tuple[str, str], Answer], answers: list[Answer]) -> list[str]:
    """A line for each window that is new, complete or corrected; further early panes are not told."""
    told = []
    for start in dict.fromkeys(one.start for one in answers):
        mine = [one for one in answers if one.start == start]
        old = {one.team: before.get((one.start, one.team)) for one in mine}
        for timing, (word, _) in MARKS.items():
            fresh = [one for one in mine if one.timing == timing and _news(old[one.team], one)]
            if fresh:
                said = ", ".join(f"{one.team} {one.points:,}" for one in fresh)
                told.append(f"window {fresh[0].clock}, {word}: {said}")
    return told


def table(answers: list[Answer]) -> Table:
    """The answers of the last windows: a row for each team, a column for each window."""
    from rich.table import Table
    from rich.text import Text

    starts = list(dict.fromkeys(one.start for one in answers))
    found = {(one.start, one.team): one for one in answers}
    shown = Table(
        title="points by team and window, as SQLite has them now",
        title_style="bold",
        title_justify="left",
        header_style="cyan",
        box=None,
        padding=(0, 1),
    )
    shown.add_column("team")
    for start in starts:
        shown.add_column(start[11:19], justify="right", no_wrap=True)
    for team in sorted({one.team for one in answers}):
        shown.add_row(team, *[_cell(found.get((start, team)), Text) for start in starts])
    return shown


def _cell(answer: Answer | None, text: type[Any]) -> Any:
    if answer is None:
        return text("")
    word, colour = MARKS[answer.timing]
    return text.assemble(f"{answer.points:,} ", (f"{word:<9}", colour))


def _news(old: Answer | None, new: Answer) -> bool:
    if old is None:
        return True
    return old.timing != new.timing or (new.timing == "late" and old.index != new.index)
