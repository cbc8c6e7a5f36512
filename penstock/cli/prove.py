"""`penstock prove`: does a pipeline lose or double anything when it is killed?"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.api.loader import load
from penstock.cli.check import File
from penstock.cli.run import Master, use_master
from penstock.errors import PenstockError

EPILOG = """Examples:

* `penstock prove team_scores.py --kills 50`
* `penstock prove team_scores.py --kills 200 --resume prove.json`
* `penstock prove jobs.py:hourly --kills 10 --without panes/foreachbatch --json`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(prove)


def prove(
    file: File,
    kills: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How often it is killed.")] = 50,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="The same seed asks for the same kills.")] = 7,
    batches: Annotated[
        int, typer.Option(min=2, metavar="NUMBER", help="How many batches are recorded at most; each life plays them.")
    ] = 12,
    batch_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="Rows a batch; default: as the pipeline says, or 1,000."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="OUTPUT", help="Leave out an output, such as panes/foreachbatch; may be given again."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep progress here, and go on from it where there is some."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object at the end, for machines.")] = False,
    master: Master = None,
) -> None:
    """Kill a pipeline, start it again, and compare its sinks with an undisturbed run.

    What its sources have for a few batches is recorded first. Then the pipeline plays it once undisturbed, and in one
    life after another in which it is killed (SIGKILL, every process) at named points of a batch and at seeded moments.
    Each life has a checkpoint and sinks of its own: nothing is written where the pipeline writes. A kill takes about as
    long as Spark needs to start. Exit code 1 where anything was lost, doubled, torn or different.
    """
    from penstock.spark.session import refuse_java
    from penstock.testing.crash.campaign import Row
    from penstock.testing.crash.prove import HEAD, Asked, Proof, lines_of, prove as proven

    refuse_java()
    if master is not None and not master.startswith("local"):
        raise PenstockError(
            f"the master is {master!r}",
            "every process of a run is killed, and those of a cluster are not on this machine",
            "leave --master out, or write --master local[2]",
        )
    use_master(master)
    # Stopped from outside, it takes the run with it that it was about to kill.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def say(lines: list[str]) -> None:
        if not as_json:
            print("\n".join(lines), flush=True)

    def began(proof: Proof) -> None:
        say([*proof.before(), HEAD])

    def on_row(proof: Proof, row: Row) -> None:
        say(lines_of(row, proof.delivery))

    asked = Asked(file, kills, seed, batches, batch_rows, tuple(without or ()))
    load(file)  # what cannot be read is refused before anything is said to be recorded
    say(["recording what the sources have, then an undisturbed run"])
    found = proven(asked, progress=resume, began=began, on_row=on_row)
    if as_json:
        print(json.dumps(found.plain(), indent=2, default=str))
    say(found.summary())
    if not found.good:
        raise typer.Exit(1)
