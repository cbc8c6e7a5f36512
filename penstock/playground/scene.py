"""What is shown: planes, tables, lines, bars and a log, step after step, as plain values for any front-end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.observability.time_plane import Plane

Cells = tuple[str, ...]
Rows = list[tuple[int, Cells]]


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of the run: its time, where it has one, and what happened in words."""

    text: str
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that sums the run up."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A plane; `across` says which time its windows are of, `variable` which pipeline of the shown code it draws.

    `frame` bounds event time where the data does not; what lies beyond is drawn at the edge. Without `line` the
    watermark is not drawn, where it is not what the page is about.
    """

    title: str
    plane: Plane
    windows: tuple[tuple[int, int], ...] = ()
    across: str = "event"
    note: str = ""
    variable: str = "totals"
    frame: tuple[int, int] | None = None
    line: bool = True

    def plain(self) -> dict[str, Any]:
        """The picture as JSON has it."""
        return {
            "kind": "plane",
            "title": self.title,
            "plane": self.plane.plain(),
            "across": self.across,
            "windows": [list(window) for window in self.windows],
            "note": self.note,
            "variable": self.variable,
            "frame": self.frame,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that appear step after step; a row is (step, cells). Where `latest`, only those of the newest step are."""

    title: str
    columns: Cells
    rows: tuple[tuple[int, Cells], ...]
    note: str = ""
    latest: bool = False

    def plain(self) -> dict[str, Any]:
        """The table as JSON has it."""
        return {
            "kind": "table",
            "title": self.title,
            "columns": list(self.columns),
            "note": self.note,
            "latest": self.latest,
            "rows": [{"step": step, "cells": list(cells)} for step, cells in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Lines:
    """Numbers over the steps, each line by its name, one number a step."""

    title: str
    unit: str
    lines: tuple[tuple[str, tuple[float, ...]], ...]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The lines as JSON has them."""
        return {
            "kind": "lines",
            "title": self.title,
            "unit": self.unit,
            "note": self.note,
            "lines": [{"name": name, "values": list(values)} for name, values in self.lines],
        }


@dataclass(frozen=True, slots=True)
class Bars:
    """Numbers beside one another, each bar by its name, one number a step."""

    title: str
    unit: str
    bars: tuple[tuple[str, tuple[float, ...]], ...]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The bars as JSON has them."""
        return {
            "kind": "bars",
            "title": self.title,
            "unit": self.unit,
            "note": self.note,
            "bars": [{"name": name, "values": list(values)} for name, values in self.bars],
        }


@dataclass(frozen=True, slots=True)
class Triangle:
    """Three goals, and shapes that reach as far into each corner as they are good at it, from 0 to 1."""

    title: str
    corners: tuple[str, str, str]
    shapes: tuple[tuple[str, tuple[float, ...]], ...]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The triangle as JSON has it."""
        shapes = [[name, list(shares)] for name, shares in self.shapes]
        return {
            "kind": "triangle",
            "title": self.title,
            "corners": list(self.corners),
            "shapes": shapes,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Lane:
    """A partition of a log at one step: its records as (text, state), and who stands where in it."""

    name: str
    records: tuple[tuple[str, str], ...]
    pointers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Log:
    """The partitions of a log, step after step."""

    title: str
    frames: tuple[tuple[Lane, ...], ...]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The log as JSON has it."""
        frames = [[asdict(lane) for lane in lanes] for lanes in self.frames]
        return {"kind": "log", "title": self.title, "note": self.note, "frames": frames}


Panel = Picture | Table | Lines | Bars | Triangle | Log


@dataclass(frozen=True, slots=True)
class Scene:
    """All of one run."""

    steps: Sequence[Step]
    panels: Sequence[Panel]
    figures: Sequence[Figure] = ()

    def plain(self) -> dict[str, Any]:
        """The scene as JSON has it."""
        return {
            "steps": [asdict(step) for step in self.steps],
            "panels": [panel.plain() for panel in self.panels],
            "figures": [asdict(figure) for figure in self.figures],
        }
