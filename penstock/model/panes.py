"""How results relate: accumulating, discarding or retracting panes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.model.windows import Window
from penstock.types.timestamps import show

Mode = Literal["accumulating", "discarding", "retracting"]
Timing = Literal["early", "on_time", "late"]

PANE_COLUMNS = ("window_start", "window_end", "pane_index", "pane_timing", "pane_final", "op")


@dataclass(frozen=True, slots=True)
class Pane:
    """One emitted result of one window of one key; `op` is +1, or -1 where it withdraws an earlier one."""

    key: tuple[object, ...]
    window: Window
    values: Mapping[str, object]
    index: int
    timing: Timing
    final: bool
    op: int
    event_time: int

    def __str__(self) -> str:
        shown = " ".join(f"{name}={value}" for name, value in self.values.items())
        final = " final" if self.final else ""
        return f"{self.op:+d} {self.key} [{self.window}] {shown} {self.timing} #{self.index}{final}"


@dataclass(frozen=True, slots=True)
class Given:
    """A row that a stage gave to one of its outputs; `op` is +1, or -1 where it withdraws an earlier one."""

    output: str
    row: Mapping[str, object]
    event_time: int
    op: int = 1


@dataclass(frozen=True, slots=True)
class Late:
    """A row that no window would take any more, and why; `op` is -1 where it would have withdrawn another."""

    row: Mapping[str, object]
    event_time: int
    watermark: int
    late_by: int
    source: str
    partition: str
    windows: tuple[Window, ...]
    op: int = 1

    def __str__(self) -> str:
        missed = ", ".join(str(window) for window in self.windows)
        return f"{dict(self.row)} at {show(self.event_time)}, {self.late_by} us behind, missed {missed}"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that could not be used, as it came, and the reason."""

    row: Mapping[str, object]
    source: str
    partition: str
    offset: int
    step: str
    reason: str
