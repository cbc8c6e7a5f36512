"""What is told to others: text of other people's making for a terminal, and infinite times for JSON."""

from __future__ import annotations

from typing import Any

from penstock.types.timestamps import MAX_TIME, MIN_TIME

_INFINITE = {MIN_TIME: "-inf", MAX_TIME: "+inf"}


def harmless(text: str) -> str:
    """A line without control characters, which a terminal would obey, nor those that turn the direction of writing.

    >>> harmless("red\\x1b[2J")
    'red\\\\x1b[2J'
    """
    # What is no letter and no sign is shown by its number.
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def worded(value: Any) -> Any:
    """Plain values in which the infinite times are words, as in a plane: not every reader of JSON has such integers."""
    if isinstance(value, dict):
        return {name: worded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [worded(one) for one in value]
    return _INFINITE.get(value, value) if type(value) is int else value
