"""`penstock check` and `penstock explain`: is the plan right, and what does it do? Without Spark, in a moment."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.api.loader import load
from penstock.errors import PenstockError

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file of Python with a pipeline in it, or a module; FILE:NAME where it has several.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Both commands."""
    app.command(epilog="Example: `penstock check team_scores.py`")(check)
    app.command(epilog="Example: `penstock explain team_scores.py`")(explain)


def check(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Say whether a pipeline can be right, and what in it is costly or surprising.

    Starts no Spark. Exit code 1 where the plan is refused; warnings do not change it.
    """
    try:
        pipeline = load(file)
        warnings = pipeline.check()
    except PenstockError as error:
        if not as_json:
            raise
        places = [str(note) for note in getattr(error, "__notes__", ())]
        told = {"what": error.what, "why": error.why, "instead": error.instead, "where": places}
        print(json.dumps({"ok": False, "file": file, "error": told}, indent=2))
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps({"ok": True, "file": file, "pipeline": pipeline.name, "warnings": list(warnings)}, indent=2))
        return
    for warning in warnings:
        typer.secho("warning: ", fg="yellow", nl=False)
        print(warning)
    typer.secho("ok", fg="green", nl=False)
    print(f": {pipeline.name}" + (f", {len(warnings)} to think about" if warnings else ""))


def explain(file: File) -> None:
    """Say in words what a pipeline computes, where, when and how, and where it is written.

    Starts no Spark. Exit code 1 where the plan is refused.
    """
    pipeline = load(file)
    print(pipeline.explain())
