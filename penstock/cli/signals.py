"""How does a command that goes on end: by Ctrl-C and by SIGTERM, also where a shell started it in the background."""

from __future__ import annotations

import signal


def end_on_signals() -> None:
    """Make both a KeyboardInterrupt. A shell lets what it starts with `&` ignore Ctrl-C, and Python leaves it so."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
