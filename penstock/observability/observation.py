"""What was observed of one batch: counts, clocks, shares of time, and samples, as values that JSON has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Observation:
    """One batch.

    `watermarks` stood in it, one for each stage, and `watermark` is the first stage's of the batch to come. `counts`
    are of this batch, `totals` of all so far. `partitions` have their clocks and, where a log can tell, their lag.
    `hot` are keys with their share of the events and by how much that may be too high. `dots`, `panes`, `given`, `late`
    and `bad` are samples; `rows` says how many there were of each. `sinks` names the batch that each was given last.
    `positions` are where the batch ended in each source, and `behind` counts how far events were behind the newest of
    their partition. `held` says what each stage remembers. `settings` are those of the run that matter to who looks at
    it. `sources` have what each has given so far, `ledgers` what each sink says that it has, `waited` the seconds in
    which the batch waited for one. `missed` counts the batches before this one that could not be written down. Lengths
    of time are in microseconds, but for `seconds`, `elapsed` and `waited`.
    """

    batch: int
    now: int
    wall: float
    seconds: float
    elapsed: float
    watermark: int
    watermarks: list[int]
    shares: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    partitions: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    hot: list[list[Any]] = field(default_factory=list)
    dots: list[dict[str, Any]] = field(default_factory=list)
    panes: list[dict[str, Any]] = field(default_factory=list)
    given: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    sinks: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    positions: dict[str, Any] = field(default_factory=dict)
    behind: list[dict[str, Any]] = field(default_factory=list)
    replayed: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    ledgers: dict[str, dict[str, Any]] = field(default_factory=dict)
    waited: float = 0.0
    missed: int = 0
    total_panes: int = 0
    checkpoint: dict[str, int] = field(default_factory=dict)

    def line(self) -> bytes:
        """One line of a file."""
        # As they are: copies of all samples would take longer than writing them.
        held = {"version": VERSION, **{name: getattr(self, name) for name in _NAMES}}
        return json.dumps(held, ensure_ascii=False, separators=(",", ":")).encode()


_NAMES = tuple(one.name for one in fields(Observation))


def observation(line: bytes) -> Observation | None:
    """What a line says; None where it was cut off, or written by a version that says other things."""
    try:
        held = json.loads(line)
        return Observation(**{name: value for name, value in held.items() if name in _NAMES})
    except (ValueError, TypeError, AttributeError):
        return None
