"""Which commands there are."""

from __future__ import annotations

from typing import Annotated

import typer

import penstock
from penstock.cli import (
    advise,
    check,
    init,
    metrics,
    picture,
    play,
    prove,
    quarantine,
    run,
    status,
    top,
    ui,
    verify,
    why,
)
from penstock.cli.demo import command

app = typer.Typer(
    name="penstock",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    run,
    check,
    verify,
    prove,
    status,
    ui,
    top,
    metrics,
    why,
    advise,
    quarantine,
    picture,
    init,
    command,
    play,
):
    module.add_to(app)


def _version(asked: bool) -> None:
    if asked:
        print(f"penstock {penstock.__version__}")
        raise typer.Exit


@app.callback(epilog="Begin with `penstock demo`, or with `penstock init` and then `penstock run team_scores.py`.")
def _penstock(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """Streams in event time, on Spark: windows, watermarks, triggers, panes.

    Exit codes: 0 it ended or was stopped, 1 it was refused or failed, 2 the command itself is wrong.
    """
