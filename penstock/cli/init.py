"""`penstock init`: a starter pipeline, commented, that runs as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import PenstockError

STARTER = '''"""Points of each team in every ten seconds of a game, kept in a SQLite file.

    penstock check @file@.py      # can the plan be right?
    penstock explain @file@.py    # what does it do?
    penstock run @file@.py        # Ctrl-C stops it after the batch; run it again and it goes on
"""

import penstock as ps

# The source: scores of a mobile game, made up as they come. One in a hundred is a straggler that comes a minute or so
# after it happened. Put your own here: ps.directory("scores/", ...), ps.kafka("scores", ...), or ps.stream(df) for any
# DataFrame of Spark's.
scores = ps.game_scores(rate=1_000, disorder="2 seconds", faults=ps.Faults(stragglers=0.01, straggler_delay="1 minute"))

totals = (
    # Event time: when it happened, not when it came. The watermark is how far event time is thought to be complete:
    # the newest event less five seconds; a partition that is silent for ten is not waited for.
    scores.event_time("at", watermark=ps.bounded("5 seconds", idle="10 seconds"))
    .key_by("team")
    # Where: windows of ten seconds. A complete one takes corrections for another half a minute; what comes later
    # still is not lost, but goes to the late rows below.
    .window(ps.tumbling("10 seconds"), lateness="30 seconds")
    # When: a first guess every two seconds, the answer when the watermark passes, a correction for each late row.
    .trigger(ps.at_watermark(early=ps.every("2 seconds"), late=ps.count(1)))
    # How: every pane is the whole answer so far, so the last one replaces those before it.
    .accumulating()
    # What:
    .aggregate(points=ps.sum("points"), plays=ps.rows())
)

@table@ = ps.pipeline(
    "@name@",
    totals.write(ps.sqlite("@file@.db", table="@table@")),
    totals.late.write(ps.files("@file@_late", format="json")),
)

# Look at the answers while it runs:
#   sqlite3 @file@.db "SELECT window_start, team, points, pane_timing FROM @table@ ORDER BY 1 DESC, 2 LIMIT 16"
'''


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(name="init", epilog="Example: `penstock init team_scores`")(init)


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the pipeline is called.")] = "team_scores",
) -> None:
    """Write a commented starter pipeline that runs as it is.

    It makes NAME.py in this folder: game scores, made up as they come, into a SQLite file, with early, on-time and late
    panes. A file that is there already is left as it is.
    """
    stem = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z][\w-]*", stem):
        raise PenstockError(
            f"a pipeline cannot be called {name!r}",
            "the name becomes that of a file, a table and a checkpoint: letters, digits, '_' and '-'",
            "write penstock init team_scores",
        )
    file = Path(f"{stem}.py")
    text = starter(stem)
    try:
        with open(file, "x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise PenstockError(
            f"the file {file} is there already", "nothing is written over", f"write penstock init {stem}_2"
        ) from None
    except OSError as error:
        raise PenstockError(f"the file {file} cannot be written", str(error), "choose another folder") from None
    typer.secho(f"{file} is written", fg="green", nl=False)
    print(f". Now try:\n  penstock explain {file}\n  penstock run {file}\nand while it runs, in another terminal:")
    print(f"  penstock status checkpoints/{stem.replace('_', '-')}")


def starter(stem: str) -> str:
    """The starter pipeline under a name."""
    return (
        STARTER.replace("@file@", stem)
        .replace("@table@", stem.replace("-", "_"))
        .replace("@name@", stem.replace("_", "-"))
    )
