"""Has a PNG the size it should have, words on it, and the colours that were asked for?"""

from __future__ import annotations

import struct
import sys
import zlib

import pytest

from penstock.errors import PenstockError
from penstock.observability.time_plane import Dot, Mark, Plane, Shown
from penstock.picture import Look, png
from penstock.picture.png import rendered

PLANE = Plane("small", (Dot(0, 1_000_000, "", "7"),), (Mark(0, 0),), (Shown("", 0, 10, 1_000_000, 0, "early", "7"),))


def size(made: bytes) -> tuple[int, int]:
    assert made[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", made[16:24])


def pixels(made: bytes) -> bytes:
    """The compressed rows, decompressed: enough to tell two pictures apart."""
    rows, at = b"", 8
    while at < len(made):
        (length,) = struct.unpack(">I", made[at : at + 4])
        if made[at + 4 : at + 8] == b"IDAT":
            rows += made[at + 8 : at + 8 + length]
        at += length + 12
    return zlib.decompress(rows)


@pytest.mark.parametrize("width", [400, 600])
def test_two_pixels_for_each_of_the_picture(width: int) -> None:
    from penstock.picture import svg

    height = int(svg(PLANE, Look(width)).partition(' height="')[2].partition('"')[0])
    assert size(png(PLANE, Look(width))) == (2 * width, 2 * height)


def test_dark_is_dark() -> None:
    assert pixels(png(PLANE, Look(400, "dark"))) != pixels(png(PLANE, Look(400)))
    assert pixels(png(PLANE, Look(400, "light"))) == pixels(png(PLANE, Look(400)))


def test_the_words_are_there() -> None:
    """resvg draws nothing, and says nothing, where it finds no font."""
    other = Plane("other", PLANE.dots, PLANE.marks, PLANE.panes)
    assert pixels(png(other)) != pixels(png(PLANE))


def test_without_a_font_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["penstock.picture.png"]
    monkeypatch.setattr(module, "_has_a_font", lambda: False)
    with pytest.raises(PenstockError, match="there is no font on this machine"):
        rendered("<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(PenstockError, match="resvg-py is not installed") as refused:
        png(PLANE)
    assert "pip install 'penstock[picture]'" in refused.value.instead
