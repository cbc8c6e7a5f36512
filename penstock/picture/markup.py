"""How does text come into a picture: escaped, without controls, shortened, and with a guess of its width."""

from __future__ import annotations

import unicodedata
from xml.sax.saxutils import escape

MISSING = "\N{REPLACEMENT CHARACTER}"
# A control, half a surrogate pair or an unassigned sign is no XML, and these can turn the text around them.
_NOT_TEXT = ("Cc", "Cs", "Cn", "Co")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NARROW = frozenset("iljtfrI.,:;|'!()[] ")


def plain(text: str) -> str:
    """A text of one line that any XML reader takes."""
    line = " ".join(text.split())
    return "".join(MISSING if unicodedata.category(sign) in _NOT_TEXT or sign in _TURNING else sign for sign in line)


def shortened(text: str, signs: int) -> str:
    """The text, or its beginning and a sign that more was there.

    >>> shortened("an answer", 20), shortened("a very long answer", 8)
    ('an answer', 'a very …')
    """
    line = plain(text)
    return line if len(line) <= signs else line[: signs - 1] + "…"


def fitting(text: str, size: float, room: float) -> str:
    """As much of a text as there is room for."""
    line = plain(text)
    if width_of(line, size) <= room:
        return line
    while line and width_of(line + "…", size) > room:
        line = line[:-1]
    return line + "…"


def wrapped(text: str, size: float, room: float, most: int) -> list[str]:
    """A text in lines that fit; what is beyond the last of them is cut."""
    lines, rest = [""], plain(text).split(" ")
    while rest:
        longer = f"{lines[-1]} {rest[0]}".strip()
        if lines[-1] and width_of(longer, size) > room:
            if len(lines) == most:
                return [*lines[:-1], fitting(" ".join([lines[-1], *rest]), size, room)]
            lines.append("")
            continue
        lines[-1] = longer
        rest = rest[1:]
    return [fitting(line, size, room) for line in lines]


def width_of(text: str, size: float) -> float:
    """How wide a text is about, in a font of that size: rather too much than too little."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    narrow = sum(sign in _NARROW for sign in text)
    return size * (wide * 1.02 + narrow * 0.41 + (len(text) - wide - narrow) * 0.66)


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; what is inside is markup already, and attributes are escaped (`class_` is class, `_` is -)."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "\n" if name == "g" else ""  # a line for each, so that a change of a picture can be read
    return f"<{name}{said}>{''.join(inside)}</{name}>{end}" if inside else f"<{name}{said}/>"


def text(said: str, x: float, y: float, **attributes: object) -> str:
    """A text at a place."""
    return tag("text", escape(plain(said)), x=x, y=y, **attributes)


def title(said: str) -> str:
    """What a pointer or a screen reader is told of an element."""
    return tag("title", escape(shortened(said, 300)))


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(plain(str(value)), {'"': "&quot;"})
