"""`penstock top`: what needs attention, and how does a run stand, on a terminal that is kept up to date?"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.signals import end_on_signals
from penstock.cli.why import checkpoint_store

if TYPE_CHECKING:
    from penstock.observability.health.watcher import Watching

EPILOG = """Examples:

* `penstock top checkpoints/team-scores`
* `penstock top checkpoints/team-scores --once`
* `penstock top checkpoints/team-scores --json`
"""
LOOK_EVERY = 1.0
QUIT = (b"q", b"Q", b"\x03", b"\x04")


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(top)


def top(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint on a disk of this machine, running or stopped.")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Print once and end; also what happens where there is no terminal.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, once, for machines.")] = False,
) -> None:
    """Show what needs attention, then the numbers, partitions, keys, sinks and batches of a run.

    Follows it as its batches end; q or Ctrl-C ends the view, never the run. Reads what was observed beside the
    checkpoint and changes nothing.
    """
    from penstock.observability.health.watcher import Watching

    watching = Watching(checkpoint_store(checkpoint))
    if as_json:
        from penstock.humanize import worded

        print(json.dumps(worded(watching.look().plain()), indent=2))
    elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _print(watching)
    else:
        _follow(watching)


def _print(watching: Watching) -> None:
    from rich.console import Console

    from penstock.cli.top_view import whole

    Console(highlight=False).print(whole(watching.look()))


def _follow(watching: Watching) -> None:
    from rich.console import Console

    from penstock.cli.top_view import fitting

    console = Console(highlight=False)
    look = watching.look()
    end_on_signals()
    with _keys(), console.screen() as screen:
        looked = time.monotonic()
        while True:
            # Drawn again and again also without news: the terminal may have another size, and time goes by.
            screen.update(fitting(look, console.height))
            if _quit(max(0.0, looked + LOOK_EVERY - time.monotonic())):
                return
            look, looked = watching.look(), time.monotonic()


def _quit(seconds: float) -> bool:
    """Wait for a key; whether it is one that ends the view. A terminal that is gone ends it, too."""
    try:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return False
        typed = os.read(sys.stdin.fileno(), 64)
    except (KeyboardInterrupt, OSError):
        return True
    return not typed or any(one in typed for one in QUIT)


@contextmanager
def _keys() -> Iterator[None]:
    """Keys as they are typed, without Enter and unseen; afterwards the terminal is as it was."""
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield
    except KeyboardInterrupt:
        return
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
