"""A plane as PNG: the SVG, rendered by resvg, which comes as one wheel and needs nothing of the system but a font."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from penstock.errors import PenstockError
from penstock.observability.time_plane import Plane
from penstock.picture.style import FONT
from penstock.picture.svg import Look, svg

# Two pixels for each of the picture's, so that it is sharp on every screen.
ZOOM = 2


def png(plane: Plane, look: Look | None = None, *, key: str | None = None) -> bytes:
    """The picture of a plane, light unless it is to be dark: pixels cannot follow their reader."""
    look = look or Look()
    return rendered(svg(plane, replace(look, scheme="dark" if look.scheme == "dark" else "light"), key=key))


def rendered(drawn: str) -> bytes:
    """An SVG as pixels."""
    try:
        import resvg_py
    except ModuleNotFoundError:
        raise PenstockError(
            "the package resvg-py is not installed",
            "it turns a picture into pixels",
            "write: pip install 'penstock[picture]', or name a file that ends in .svg",
        ) from None
    if not _has_a_font():
        raise PenstockError(
            "there is no font on this machine",
            "without one every word of the picture would be missing",
            "install one, such as Debian's fonts-dejavu-core, or name a file that ends in .svg",
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=ZOOM))


@cache
def _has_a_font() -> bool:
    """Whether a letter of our fonts leaves any trace: resvg says nothing where it has none, and guesses no other."""
    import resvg_py

    empty, letter = ("", f'<text y="15" font-family="{FONT}">M</text>')
    made = [
        bytes(
            resvg_py.svg_to_bytes(
                svg_string=f"<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'>{one}</svg>"
            )
        )
        for one in (empty, letter)
    ]
    return made[0] != made[1]
