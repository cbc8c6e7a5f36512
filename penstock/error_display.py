"""How is an error told: what, why and instead in colour on a terminal, as plain lines elsewhere; no traceback."""

from __future__ import annotations

import os
import sys
import traceback

from penstock.diagnostics.user_functions import line_of
from penstock.errors import PenstockError

DEBUG = "PENSTOCK_DEBUG"


def tell(error: BaseException) -> None:
    """Show an error on stderr; with PENSTOCK_DEBUG=1 where it came from, too."""
    if os.environ.get(DEBUG, "") not in ("", "0"):
        traceback.print_exception(error)
    shown = error if isinstance(error, PenstockError) else _unforeseen(error)
    places = [str(note) for note in getattr(error, "__notes__", ())]
    if sys.stderr.isatty():
        _in_colour(shown, places)
        return
    print(f"error: {shown}", file=sys.stderr)
    for place in places:
        print(f"  where:   {place}", file=sys.stderr)


def _in_colour(error: PenstockError, places: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_row(Text("error", "bold red"), Text(error.what, "bold"))
    table.add_row(Text("why", "yellow"), Text(error.why))
    table.add_row(Text("instead", "green"), Text(error.instead))
    for place in places:
        table.add_row(Text("where", "cyan"), Text(place))
    Console(stderr=True, highlight=False).print(table)


def _unforeseen(error: BaseException) -> PenstockError:
    """An error that nobody has put into words yet."""
    text = " ".join(str(error).split())
    what, line = f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__, line_of(error)
    if line:
        why = f"it was raised in {line}, which is no code of Penstock's"
        return PenstockError(what, why, f"mend it there; {DEBUG}=1 shows the whole traceback")
    return PenstockError(
        what,
        "Penstock did not foresee this",
        f"{DEBUG}=1 shows where it came from; if it is not your own code, please report it",
    )
