"""`penstock init`: a starter pipeline, commented, that runs as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.starter import STARTER
from penstock.errors import PenstockError


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
