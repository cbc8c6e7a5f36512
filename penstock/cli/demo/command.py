"""`penstock demo`: a game, made up as it goes, watched for about a minute; then what was seen, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from penstock.api.loader import load
from penstock.cli.demo.answers import QUERY, asked, story
from penstock.cli.demo.pipeline_file import DATABASE, fresh
from penstock.cli.demo.view import DemoLines, DemoPanel, Lag
from penstock.cli.progress import Lines
from penstock.cli.run import watched
from penstock.humanize import clock, many, span
from penstock.types.durations import SECOND

WAITS, SILENT = 4 * SECOND, "scores/3"


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog="Example: `penstock demo --seconds 120`")(demo)


def demo(
    seconds: Annotated[float, typer.Option(min=5, metavar="NUMBER", help="How long batches are run.")] = 50,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where everything is kept; made anew each time.")
    ] = Path("demo"),
    ui: Annotated[
        bool, typer.Option("--ui/--no-ui", help="Serve the dashboard meanwhile, on this machine alone.")
    ] = True,
) -> None:
    """Watch a pipeline for about a minute: scores of a game, into a SQLite file.

    The scores are made up as they come, with the faults that real ones have. Ctrl-C ends it sooner. At the end it says
    what was seen and what to try next; the pipeline stays in the folder.
    """
    from penstock.spark.session import refuse_java

    refuse_java()
    pipeline = load(str(fresh(folder)))
    database, checkpoint = folder / DATABASE, f"{folder.as_posix()}/checkpoint"
    _say([*INTRODUCTION, f"- The pipeline is {folder / 'team_scores.py'}: look at it while it runs."])
    who = _viewer(pipeline.name, checkpoint, database)
    with _dashboard(checkpoint) if ui else nullcontext():
        ended = watched(pipeline, who, seconds=seconds, checkpoint=checkpoint, batch_every="500 milliseconds")
    if ended is not None and ended.batches:
        _say(_seen(folder, who.lag))
        _say(_answers(database))
        _say(_next(folder))


def _dashboard(checkpoint: str) -> AbstractContextManager[None]:
    """The dashboard as long as the demo runs; where none can be served, the demo goes on without."""
    from penstock.dashboard.beside_run import if_possible

    def say(address: str | None) -> None:
        if address is None:
            _say(["- The dashboard cannot be served here; the demo goes on without it.", ""])
        else:
            _say(
                [
                    "- The dashboard, with event time across and processing time up; open it now and see it move:",
                    f"  {address}",
                    "",
                ]
            )

    return if_possible(checkpoint, say)


INTRODUCTION = [
    "Penstock demo: which team has how many points, in every ten seconds of a game?",
    "- Scores come late and in disorder. So each window is answered early, as a guess; on time, when the watermark "
    "says that it is complete; and is corrected when a straggler comes after all.",
]


def _viewer(name: str, checkpoint: str, database: Path) -> DemoPanel | DemoLines:
    if not sys.stdout.isatty():
        return DemoLines(Lines(name, checkpoint, sys.stdout), database)
    from rich.console import Console

    from penstock.cli.progress_panel import LivePanel

    return DemoPanel(LivePanel(name, checkpoint, Console(highlight=False)), database)


def _seen(folder: Path, lag: Lag) -> list[str]:
    """What happened, in a few lines."""
    told = story(folder / DATABASE)
    lines = [
        "",
        "What you have seen",
        f"- {many(told.windows, 'answer')}, one for each team and window. "
        f"{told.early:,} of them were shown early, in {many(told.early_panes, 'pane')}: guesses, every second.",
        f"- {told.complete:,} were shown on time, when the watermark passed the end of their window.",
    ]
    if told.largest is not None:
        one = told.largest
        lines.append(
            f"- {told.corrected:,} were corrected by stragglers, {one.team}'s of {one.start[11:19]} the most: from "
            f"{one.before:,} to {one.after:,} points, in {many(one.times, 'late pane')}."
        )
    if lag.last is not None:
        totals = lag.last.totals
        lines.append(
            f"- {many(totals.late, 'row')} came when their window took no more corrections: not lost, but in "
            f"{folder}/late. {many(totals.quarantined, 'row')} could not be used: in "
            f"{folder}/quarantine, with the reason."
        )
        lines += _watermark(lag)
    return lines


def _watermark(lag: Lag) -> list[str]:
    assert lag.last is not None
    if lag.last.behind is None:
        return []
    waited = ""
    if lag.partition is not None and lag.behind > 1.3 * WAITS:
        silent = "said nothing, and is waited for six seconds" if lag.partition == SILENT else "was read last"
        waited = f"; once it was {span(lag.behind)}, for {lag.partition} {silent}"
    return [
        f"- The watermark stands at {clock(lag.last.watermark)} UTC, {span(lag.last.behind)} behind the clock: the "
        f"pipeline waits {span(WAITS)} for what comes in disorder{waited}."
    ]


def _answers(database: Path) -> list[str]:
    rows = [("window_start", "team", "points", "plays", "pane_timing"), *asked(database, QUERY)]
    cells = [[f"{value:,}" if isinstance(value, int) else str(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(rows[0]))]
    shown = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    query = [f"  {line}" for line in QUERY.splitlines()]
    return ["", f"The answers are rows of {database}:", *query, "", *shown]


def _next(folder: Path) -> list[str]:
    """Commands that work when they are pasted."""
    file = folder / "team_scores.py"
    tries = {
        "go on where this has stopped (Ctrl-C ends it)": f"run {file} --checkpoint {folder}/checkpoint",
        "the dashboard of what has been, in the browser": f"ui {file} {folder}/checkpoint",
        "how does it stand?": f"status {folder}/checkpoint",
        "what needs attention? (q ends the view)": f"top {folder}/checkpoint",
        "what does it do, in words?": f"explain {file}",
        "does a batch give the same answers, and Spark SQL?": f"verify {file}",
        "a pipeline of your own to begin with": "init",
    }
    said = [line for why, what in tries.items() for line in (f"  {why}", f"    {_command()} {what}")]
    return ["", "What to try next", *said]


def _command() -> str:
    """How this command is called from here."""
    if shutil.which("penstock"):
        return "penstock"
    beside = Path(sys.executable).with_name("penstock")
    here = os.path.relpath(beside if beside.exists() else sys.executable)
    return here if beside.exists() else f"{here} -m penstock"


def _say(lines: list[str]) -> None:
    """Lines, wrapped between words where a terminal is narrow."""
    if not sys.stdout.isatty():
        print("\n".join(lines), flush=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        if line.startswith("- "):
            bullet = Table.grid(padding=(0, 1))
            bullet.add_row("-", Text(line[2:]))
            console.print(bullet)
        else:
            console.print(Text(line, "" if line.startswith(" ") else "bold"), soft_wrap=line.startswith(" "))
