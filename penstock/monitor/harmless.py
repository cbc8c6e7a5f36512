"""Text of other people's making, for a terminal: what is no letter and no sign is shown by its number."""

from __future__ import annotations


def harmless(text: str) -> str:
    """A line without control characters, which a terminal would obey, nor those that turn the direction of writing.

    >>> harmless("red\\x1b[2J")
    'red\\\\x1b[2J'
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
