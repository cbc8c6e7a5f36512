"""`penstock metrics`: how does a run stand, in Prometheus' text format?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.why import checkpoint_store
from penstock.errors import PenstockError

EPILOG = """Examples:

* `penstock metrics checkpoints/team-scores`
* `penstock metrics checkpoints/team-scores -o /var/lib/node_exporter/team_scores.prom`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(metrics)


def metrics(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint on a disk of this machine, running or stopped.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there, whole or not at all, for a collector."),
    ] = None,
) -> None:
    """Print the metrics of a run once, as of its last batch.

    Reads what was observed and changes nothing; no Spark is started. `docs/metrics.md` explains every name.
    """
    from penstock.observability.health.watcher import Watching
    from penstock.observability.prometheus import exposition

    text = exposition(Watching(checkpoint_store(checkpoint)).look())
    if output is None:
        print(text, end="")
        return
    # A collector reads whenever it likes: it must never find half a page.
    aside = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, output)
    except OSError as error:
        raise PenstockError(
            f"{output} cannot be written",
            error.strerror or str(error),
            "name a file in a folder that is there and that this user may write",
        ) from None
