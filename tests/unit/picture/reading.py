"""How is a picture read back: its ticks say where a time lies, its shapes where things were drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from penstock.types.timestamps import parse

SPACE = "{http://www.w3.org/2000/svg}"
CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?")


@dataclass(frozen=True)
class Axis:
    """Two ticks: the pixel and the time of each."""

    first: tuple[float, int]
    last: tuple[float, int]

    def at(self, time: int) -> float:
        (low, since), (high, until) = self.first, self.last
        return low + (time - since) * (high - low) / (until - since)


class Picture:
    """An SVG as its reader sees it."""

    def __init__(self, drawn: str) -> None:
        self.root = ElementTree.fromstring(drawn)

    def of(self, *words: str, inside: ElementTree.Element | None = None) -> list[ElementTree.Element]:
        """The elements whose class has all these words."""
        every = (self.root if inside is None else inside).iter()
        return [one for one in every if set(words) <= set(one.get("class", "").split())]

    def texts(self, *words: str) -> list[str]:
        """The texts of a class, as they are read."""
        return ["".join(one.itertext()) for one in self.of(*words)]

    def titles(self, *words: str) -> list[str]:
        return [one.findtext(f"{SPACE}title", "") for one in self.of(*words)]

    def chips(self) -> list[str]:
        """What the labels of panes say."""
        return ["".join(one.find(f"{SPACE}text").itertext()) for one in self.of("label")]

    @property
    def across(self) -> Axis:
        ticks = [(float(one.get("x")), parse(one.text)) for one in self.of("faint", "middle") if CLOCK.match(one.text)]
        return Axis(ticks[0], ticks[-1])

    @property
    def up(self) -> Axis:
        ticks = [(float(one.get("y")) - 4, parse(one.text)) for one in self.of("faint", "end") if CLOCK.match(one.text)]
        return Axis(ticks[0], ticks[-1])

    def tops(self) -> list[tuple[float, float, float]]:
        """Of each pane the top of its rectangle: left, right and height."""
        found = []
        for one in self.of("pane"):
            path = self.of("top", inside=one)[0].get("d")
            left, _, y, right = re.fullmatch(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)v6", path).groups()
            found.append((float(left), float(right), float(y)))
        return found

    def dots(self) -> list[tuple[float, float]]:
        legend = set(self.of("dot", inside=self.of("legend")[0])) if self.of("legend") else set()
        return [(float(one.get("cx")), float(one.get("cy"))) for one in self.of("dot") if one not in legend]

    def line(self) -> list[tuple[float, float]]:
        """The corners of the watermark."""
        path = self.of("plane")[0].find(f"{SPACE}path[@class='watermark']").get("d")
        return [tuple(map(float, corner.split())) for corner in path[1:].split("L")]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the first panel."""
        one = self.of("frame")[0]
        left, top, width, height = (float(one.get(name)) for name in ("x", "y", "width", "height"))
        return left, top, left + width, top + height
