"""`penstock advise`: how long should a pipeline wait for events, and does it want a stream at all?"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.api.loader import load
from penstock.cli.why import checkpoint_store
from penstock.errors import PenstockError
from penstock.humanize import worded
from penstock.observability.advise.goals import Goals, goals_of

if TYPE_CHECKING:
    from penstock.observability.advise.report import Advice

EPILOG = """Examples:

* `penstock advise team_scores.py`
* `penstock advise team_scores.py --complete 0.999 --latency "10 seconds"`
* `penstock advise team_scores.py checkpoints/team-scores --late 0.01`
* `penstock advise checkpoints/team-scores --json`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(advise)


def advise(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] [CHECKPOINT]", help="The file of a pipeline, or FILE:NAME; a checkpoint of it; or both."
        ),
    ],
    rows: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="How many events the delays are tried on, at most.")
    ] = 200_000,
    complete: Annotated[
        str, typer.Option(metavar="SHARE", help="Which share of the rows of a window its on-time pane is to hold.")
    ] = "0.99",
    late: Annotated[str | None, typer.Option(metavar="SHARE", help="Which share of the events may be late.")] = None,
    latency: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long after the end of its window an answer may come."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Say how complete answers are with each delay of the watermark, how late, and whether the job wants a stream.

    With a file some of what its sources have is read, and every delay is played on it by the engine; with a checkpoint
    beside it the events of its last batches are, under their own clocks. A checkpoint alone tells what was counted
    while it ran. The shortest delay that reaches the goals is recommended; where they cannot be had together, which
    not, and what comes nearest. Nothing is written, and no Spark is started.
    """
    goals = goals_of(complete, late, latency)
    told = _told(places, rows, goals)
    if as_json:
        print(json.dumps(worded(told.plain()), indent=2, default=str))
        return
    from penstock.observability.advise.text import lines

    for line in lines(told, shutil.get_terminal_size().columns if sys.stdout.isatty() else None):
        print(line)


def _told(places: list[str], rows: int, goals: Goals) -> Advice:
    from penstock.checkpoint.status import standing
    from penstock.observability.advise.report import of_record, of_run, of_stream
    from penstock.observability.why.batches import observations

    if len(places) > 2:
        raise PenstockError(
            f"{len(places)} places were named",
            "a file of a pipeline, a checkpoint of it, or both are looked at",
            "write penstock advise team_scores.py checkpoints/team-scores",
        )
    if len(places) == 2:
        return of_run(load(places[0]), places[0], checkpoint_store(places[1]), rows, goals)
    if os.path.isdir(places[0]) or "://" in places[0]:
        store = checkpoint_store(places[0])
        return of_record(standing(store).name, observations(store), goals)
    return of_stream(load(places[0]), places[0], rows, goals)
