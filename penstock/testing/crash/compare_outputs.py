"""What a user's pipeline must have written: all that an undisturbed run over the same tape writes, batch by batch."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.testing.crash.life import pipeline_of
from penstock.testing.crash.redirect import suffix
from penstock.testing.crash.sink_rows import Held, held_by
from penstock.testing.crash.verdict import Rows, Verdict, Written, in_batches


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What one output holds when nothing has disturbed it."""

    name: str
    every: Written | None
    current: Rows | None

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return len(self.current or []) if self.every is None else sum(map(len, self.every.batches))

    def judge(self, held: Held, ended: bool) -> Verdict:
        """What is wrong with what another run has written."""
        verdict = Verdict()
        if self.every is not None:
            verdict += self.every.judge(held.every or [], ended)
        if self.current is not None and ended:
            verdict += _same(f"{self.name}, current answers", held.current or [], self.current)
        return verdict

    def __str__(self) -> str:
        parts = ["every row, batch by batch"] if self.every is not None else []
        parts += ["the current answers when a life has ended"] if self.current is not None else []
        return f"{self.name}: {' and '.join(parts)} ({self.rows:,} rows)"


@dataclass(frozen=True)
class OutputsChecker:
    """Compares every output of a life with that of the undisturbed run."""

    runs: Path
    outputs: tuple[Undisturbed, ...]
    written: tuple[str, ...]

    @classmethod
    def of(cls, runs: Path, token: str, folder: str, log: str) -> OutputsChecker:
        """Learn from a run that nothing disturbed, whose output is in the log."""
        batches = [json.loads(line) for line in log.splitlines() if line.startswith('{"batch"')]
        outputs, written = [], []
        for name, sink, target in _targets(runs, Path(folder)):
            held = held_by(sink, target)
            counts = _counts(target.stream, batches, held)
            at_once = not getattr(sink, "stages_all", False)
            every = None if held.every is None else in_batches(_plain(name), held.every, counts, at_once=at_once)
            outputs.append(Undisturbed(_plain(name).replace(suffix(token, Path(folder)), ""), every, held.current))
            if sum(counts):
                written.append(name.replace(suffix(token, Path(folder)), suffix(token, Path("life"))[:-4] + "{life}"))
        return cls(runs, tuple(outputs), tuple(written))

    @property
    def by_tasks(self) -> bool:
        """Whether tasks write an output themselves, and may be killed while they do."""
        return any(one.every is not None and not one.every.at_once and one.rows for one in self.outputs)

    def check(self, folder: str, ended: bool) -> Verdict:
        """Every output, up to the last batch each has; at the end all of it."""
        verdict = Verdict()
        for one, (_, sink, target) in zip(self.outputs, _targets(self.runs, Path(folder)), strict=True):
            verdict += one.judge(held_by(sink, target), ended)
        return verdict


def _targets(runs: Path, folder: Path) -> list[tuple[str, Any, Any]]:
    from penstock.coordinator.sink_targets import targets_of

    return list(targets_of(pipeline_of(runs, folder)))


def _counts(stream: str, batches: list[dict[str, Any]], held: Held) -> list[int]:
    """How many rows each batch wrote: as the rows say themselves, or as the run told."""
    if held.batches is None:
        return [one["rows"].get(stream, 0) for one in batches]
    told = Counter(held.batches)
    return [told[one["batch"]] for one in batches]


def _plain(name: str) -> str:
    """An output without the name of its pipeline."""
    return name.partition("/")[2]


def _same(what: str, found: Rows, wanted: Rows) -> Verdict:
    lost, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    twice = sum(times for row, times in more.items() if row in set(wanted))
    foreign = sum(more.values()) - twice
    said = [f"{what}: {word} {next(iter(rows))}" for word, rows in (("lacks", lost), ("has", more)) if rows]
    return Verdict(sum(lost.values()), twice, 0, foreign, tuple(said))
