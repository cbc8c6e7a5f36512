"""What becomes of a command: it runs, or its error is told in three parts; either way there is an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from penstock import __version__
from penstock.error_display import tell
from penstock.errors import PenstockError

FAILED = 1
NEEDED = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives its exit code."""
    if list(sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        print(f"penstock {__version__}")  # also where nothing but the library is installed
        return 0
    try:
        _call(arguments)
    except SystemExit as end:
        return _code(end)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except Exception as error:
        tell(error)
        return FAILED
    return 0


def _call(arguments: Sequence[str] | None) -> None:
    try:
        from penstock.cli.commands import app
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise PenstockError(
            f"the package {error.name} is not installed",
            "the command line needs it; the library alone does without",
            "write: pip install 'penstock[spark]'",
        ) from None
    app(args=None if arguments is None else list(arguments), prog_name="penstock")


def _code(end: SystemExit) -> int:
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
        return FAILED
    return end.code or 0
