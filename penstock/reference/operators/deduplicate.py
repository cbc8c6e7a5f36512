"""Dedup, one row at a time: is there a kept row of the same id near enough?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.plan.operators.deduplicate import DUPLICATES, Dedup
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record, canonical
from penstock.reference.operators.protocol import Emitted, Out
from penstock.types.timestamps import MAX_TIME, plus


class DedupMachine:
    """Dedup in progress.

    The memory has for each id what is kept: the times of rows that were given (first), or chains of rows, each its
    first time and its last row (last).
    """

    def __init__(self, rule: Dedup, sides: Sequence[Side]) -> None:
        (self.side,) = sides
        self.rule = rule
        self.memory: dict[tuple[Any, ...], list[Any]] = {}

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Play one batch."""
        (rows,) = arrivals
        out = Emitted()
        live = [row for row in rows if row.time >= plus(watermark, -self.rule.lateness)]
        out.late = [(0, row) for row in rows if row.time < plus(watermark, -self.rule.lateness)]
        if self.rule.keep == "first":
            for row in live:
                self.first(row, out)
            self.leave(watermark)
        else:
            self.last(live, out)
            for chain in sorted(self.leave(watermark), key=lambda chain: chain[1]):
                out.rows.append(Out(MAIN, chain[2], chain[1]))
            out.hold = min((chain[1] for kept in self.memory.values() for chain in kept), default=MAX_TIME)
        return out

    def held(self) -> int:
        """How many ids, or chains, are held."""
        return sum(map(len, self.memory.values()))

    def first(self, row: Record, out: Emitted) -> None:
        """A row is given out at once, unless one that was given is near it."""
        given = self.memory.setdefault(self.id_of(row), [])
        if any(abs(row.time - time) <= self.rule.within for (_, time, _) in given):
            out.rows.append(Out(DUPLICATES, row.row, row.time))
        else:
            given.append((row.time, row.time, None))
            out.rows.append(Out(MAIN, row.row, row.time))

    def last(self, rows: list[Record], out: Emitted) -> None:
        """Rows and chains that are near one another become one chain, of which the last row stays."""
        dropped = []
        for id_ in dict.fromkeys(map(self.id_of, rows)):
            kept = [(0, *chain) for chain in self.memory.get(id_, [])]
            mine = [(1 + i, row.time, row.time, row.row) for i, row in enumerate(rows) if self.id_of(row) == id_]
            chains: list[Any] = []
            for came, first, time, row in sorted([*kept, *mine], key=lambda chain: (chain[1], chain[0])):
                if chains and first <= chains[-1]["end"] + self.rule.within:
                    chains[-1]["rows"].append((time, came, row))
                    chains[-1]["end"] = max(chains[-1]["end"], time)
                else:
                    chains.append({"start": first, "end": time, "rows": [(time, came, row)]})
            self.memory[id_] = []
            for chain in chains:
                *others, newest = sorted(chain["rows"], key=lambda row: row[:2])
                self.memory[id_].append((chain["start"], newest[0], newest[2]))
                dropped += others
        for time, _, row in sorted(dropped, key=lambda row: row[:2]):
            out.rows.append(Out(DUPLICATES, row, time))

    def leave(self, watermark: int) -> list[Any]:
        """What no row that is not late can be near to any more."""
        gone = []
        for id_, kept in list(self.memory.items()):
            gone += [one for one in kept if watermark > plus(one[1], self.rule.reach)]
            self.memory[id_] = [one for one in kept if watermark <= plus(one[1], self.rule.reach)]
            if not self.memory[id_]:
                del self.memory[id_]
        return gone

    def id_of(self, row: Record) -> tuple[Any, ...]:
        return tuple(canonical(row.row[name]) for name in self.side.keys)
