"""A run that was never run: observations beside a checkpoint, written as a run on Spark writes them, in no time.

A game of five teams in four partitions: windows of ten seconds, a pane every second, on time when the watermark passes
the end, late when a straggler comes; partition 3 is silent for a while. What is shown is what was counted.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.checkpoint.checksummed_json import sealed
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.lease import take_lease
from penstock.engine.watermarks import ClockState
from penstock.observability.journal import FOLDER, Recorder, segment
from penstock.observability.observation import Observation
from penstock.runtime.batch import Counts
from penstock.storage.local import LocalStore
from penstock.types.timestamps import MIN_TIME

SECOND = 1_000_000
NOON = 1_777_636_800 * SECOND  # 2026-05-01 12:00:00
TEAMS = ("amber", "blue", "coral", "dune", "ember")
WAITS = 4 * SECOND
SIZE = 10 * SECOND


@dataclass
class Run:
    """A made-up run; `batch` makes one more batch and has it kept."""

    root: Path
    teams: tuple[str, ...] = TEAMS
    source: str = "scores"
    dots: int = 24  # of each partition and batch
    name: str = "team-scores"
    lineage: str = "1f" * 16
    clocks: bool = True  # whether each batch has its clock written, which takes a while
    number: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    newest: dict[int, int] = field(default_factory=dict)
    sums: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    shown: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    ended: set[tuple[str, int]] = field(default_factory=set)
    watermark: int = MIN_TIME
    totals: Counts = field(default_factory=Counts)
    panes: int = 0
    last: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = LocalStore(str(self.root))
        self.store.create("penstock/identity", sealed(
            {"name": self.name, "lineage": self.lineage, "shards": 2, "binding": {}}))  # fmt: skip
        self.lease = take_lease(self.store)
        self.recorder = Recorder(self.store)

    def batches(self, count: int) -> Run:
        """So many more."""
        for _ in range(count):
            self.batch()
        return self

    def repeated(self, count: int) -> None:
        """So many more without playing them: the last twenty over and over, later each time. No clock is kept."""
        if not self.last:
            self.last = [json.loads(self.batch().line()) for _ in range(20)]
        lines = []
        for _ in range(count):
            one = self.last[self.number % 20]
            by = (self.number - one["batch"]) * SECOND
            told = {
                **one, "batch": self.number, "now": one["now"] + by, "watermark": one["watermark"] + by,
                "watermarks": [at + by for at in one["watermarks"]], "wall": time.time(),
                "dots": [{**dot, "event_time": dot["event_time"] + by, "offset": self.number} for dot in one["dots"]],
                "panes": [{**pane, "start": pane["start"] + by, "end": pane["end"] + by} for pane in one["panes"]],
            }  # fmt: skip
            lines.append(json.dumps(told).encode() + b"\n")
            self.number += 1
        Path(self.root, FOLDER, segment(self.number)).write_bytes(b"".join(lines))

    def batch(self, *, replayed: bool = False, **more: Any) -> Observation:
        """One more batch, a second after the one before."""
        number = self.number
        now = NOON + number * SECOND
        before = self.watermark
        dots, late, bad = self._events(number, now, before)
        clocks = [{"source": self.source, "partition": str(one), "newest": at, "watermark": at - WAITS,
                   "idle": now - at > 8 * SECOND, "silent_for": max(0, now - at - 2 * SECOND), "lag": None,
                   "to_log": 40_000, "from_log": 150_000} for one, at in sorted(self.newest.items())]  # fmt: skip
        waited = [one["watermark"] for one in clocks if not one["idle"]]
        self.watermark = max(before, min(waited, default=before))
        panes = list(self._panes(before, {dot["key"] for dot in dots if dot["fresh"]}))
        counts = Counts(read=20 * len(dots), kept=20 * len(dots), late=len(late), quarantined=len(bad))
        self.totals, self.panes, self.number = self.totals + counts, self.panes + len(panes), number + 1
        read, step = 0.2 + 0.1 * self.chance.random(), 0.15 + 0.1 * self.chance.random()
        told = {
            "batch": number, "now": now, "wall": time.time(), "seconds": 0.62, "elapsed": 1.0,
            "watermark": self.watermark, "watermarks": [before],
            "shares": {"read": read, "step": step, "sinks": 0.12, "waiting": 0.88 - read - step},
            "counts": asdict(counts), "totals": asdict(self.totals),
            "rows": {"panes": len(panes), "late": len(late), "quarantine": len(bad)}, "partitions": clocks,
            "state": {"open": 12, "rows": 5_000 + 10 * number, "bytes": 900_000 + 1_200 * number},
            "held": {"1: join": 4_000 + number, "2: windows": 12},
            "hot": [[team, 0.5 / 2**place, 0.001] for place, team in enumerate(self.teams)],
            "dots": [{name: dot[name] for name in ("partition", "offset", "event_time", "key", "text")}
                     for dot in dots],
            "panes": panes, "late": late, "bad": bad,
            "sinks": {f"{self.name}/panes/team_scores": number, f"{self.name}/late/late": number - 3},
            "positions": {}, "replayed": replayed,
        }  # fmt: skip
        one = Observation(**{**told, **more})
        self.recorder.write(one)
        partitions = [
            [c["source"], c["partition"], c["newest"], c["watermark"], c["idle"], c["silent_for"]] for c in clocks
        ]
        if not self.clocks:
            return one
        write_clock(self.store, self.lineage, Clocks(
            number + 1, ClockState(now=now, watermark=self.watermark), self.totals, {}, self.panes, given=one.sinks,
            open_windows=12, partitions=partitions))  # fmt: skip
        return one

    def _events(self, number: int, now: int, before: int) -> tuple[list[Any], list[Any], list[Any]]:
        dots, late, bad = [], [], []
        for partition in range(4):
            if partition == 3 and 45 <= number < 60:
                continue
            for place in range(self.dots):
                lag = self.chance.expovariate(1 / 0.7) if self.chance.random() > 0.01 else self.chance.uniform(10, 30)
                at, team = now - int(lag * SECOND), self.chance.choice(self.teams)
                points = self.chance.randint(1, 20)
                offset = number * self.dots + place
                held = {"partition": f"{self.source}/{partition}", "offset": offset, "event_time": at, "key": team,
                        "text": f"points {points}"}  # fmt: skip
                start = at - at % SIZE
                if before >= start + SIZE + 10 * SECOND:
                    late.append(
                        {
                            **held,
                            "stage": 0,
                            "watermark": before,
                            "late_by": before - at,
                            "windows": [[start, start + SIZE]],
                            "why": "every window it belongs to had expired",
                        }
                    )
                    dots.append({**held, "fresh": False})
                    continue
                self.newest[partition] = max(self.newest.get(partition, MIN_TIME), at)
                one = self.sums[team, start]
                one[0], one[1], one[2] = one[0] + points, one[1] + 1, number
                dots.append({**held, "fresh": True})
            if self.chance.random() < 0.03:
                bad.append({"partition": f"{self.source}/{partition}", "offset": 10**6 + number, "step": "decode",
                            "why": "points: 'twelve' is not a long", "text": '{"points": "twelve"}'})  # fmt: skip
        return dots, late, bad

    def _panes(self, before: int, _: set[str]) -> Any:
        for (team, start), (points, plays, touched) in sorted(self.sums.items()):
            end, key = start + SIZE, (team, start)
            if self.watermark >= end + 10 * SECOND:
                del self.sums[key]
                continue
            due = self.watermark >= end and key not in self.ended
            if touched != self.number and not due:
                continue
            timing = "on_time" if due else "late" if key in self.ended else "early"
            if due:
                self.ended.add(key)
            yield {"stage": 0, "key": team, "start": start, "end": end, "index": self.shown[key], "timing": timing,
                   "final": False, "op": 1, "text": f"points {points}, plays {plays}"}  # fmt: skip
            self.shown[key] += 1
