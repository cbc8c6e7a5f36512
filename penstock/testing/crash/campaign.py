"""One life after another: a pipeline killed, looked at, and started again until it has ended or enough have died."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from penstock.testing.crash.kill_schedule import SHARD_POINTS, SINK_POINTS, Pace, kill_of
from penstock.testing.crash.process import Death, Kill, died
from penstock.testing.crash.verdict import Checker, Verdict

FAILED = "it failed"


@dataclass(frozen=True, slots=True)
class Subject:
    """A script that runs a pipeline below a folder, and how what it wrote is judged.

    `{life}` in the name of a sink stands for the life, where each has a table of its own. `points` are such as only
    this pipeline has, and before the batch `shows` its sinks are given nothing: no kill waits for them there.
    """

    command: Callable[[str], Sequence[str]]
    checker: Callable[[str, str], Checker]
    sinks: tuple[str, ...]
    checkpoint: str = "checkpoint"
    log: str = "log"
    points: tuple[str, ...] = ()
    shows: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a kill, or the end of a life."""

    kill: int | None
    life: int
    at: str
    batches: int
    restarts: int
    verdict: Verdict


@dataclass
class Campaign:
    """So many kills of one pipeline; what was done is in a file, from which it goes on."""

    subject: Subject
    file: Path
    seed: int = 7
    rows: list[Row] = field(default_factory=list)
    life: int = 0
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def resumed(cls, subject: Subject, file: Path, seed: int) -> Campaign:
        """Go on from the file where there is one."""
        campaign = cls(subject, file, seed)
        if file.exists():
            held = json.loads(file.read_text())
            if held["seed"] != seed:
                raise SystemExit(f"{file} holds kills of seed {held['seed']}: name another file, or remove it")
            campaign.life, campaign.pace = held["life"], Pace(**held["pace"])
            campaign.rows = [
                Row(**{**row, "verdict": Verdict(**{**row["verdict"], "said": tuple(row["verdict"]["said"])})})
                for row in held["rows"]
            ]
        return campaign

    @property
    def killed(self) -> int:
        """How many have died so far."""
        return sum(row.kill is not None for row in self.rows)

    def run(self, kills: int) -> Iterator[Row]:
        """Kill until so many have died; the last life is let live to its end."""
        checker = self.undisturbed()
        while self.killed < kills or self._begun():
            kill = None
            if self.killed < kills:
                kill = self._next()
            death = self._died(kill)
            self._learn(death)
            yield self._judged(checker, kill, death)

    def _next(self) -> Kill:
        missed = len(list(takewhile(lambda row: row.kill is None, reversed(self.rows))))
        life = self._folder().name.replace("-", "")
        sinks = tuple(one.replace("{life}", life) for one in self.subject.sinks)
        kill = kill_of(self.killed + 1, self.seed, sinks, self._batches(), self.pace, missed, self.subject.points)
        given = kill.point.startswith((*SINK_POINTS, *SHARD_POINTS))
        return replace(kill, batch=max(kill.batch, self.subject.shows)) if given else kill

    def _judged(self, checker: Checker, kill: Kill | None, death: Death) -> Row:
        """Look at the sinks, write the line down, and begin another life where this one is over."""
        here = [row for row in self.rows if row.life == self.life]
        wrong = death.code != 0 and not death.killed
        verdict = Verdict(said=(death.said[-2000:],)) if wrong else Verdict()
        verdict += checker.check(str(self._folder()), ended=death.code == 0)
        at = f"{FAILED}, exit code {death.code}" if wrong else "ended" if death.code == 0 else str(kill)
        row = Row(self.killed + 1 if death.killed else None, self.life, at, death.batches, len(here), verdict)
        self.rows.append(row)
        if not death.killed:
            self.life += 1
        self._save()
        return row

    def undisturbed(self) -> Checker:
        """Run it once without a kill, unless that was done, and learn from it what is right."""
        folder = self.file.with_suffix(".runs") / "undisturbed"
        log, done = folder / self.subject.log, folder / "done"
        if not done.exists():
            death = died(self.subject.command(str(folder)), folder / self.subject.checkpoint, None, log)
            if death.code:
                raise AssertionError(f"the undisturbed run fails:\n{death.said}")
            self._learn(death)
            done.touch()
        return self.subject.checker(str(folder), log.read_text())

    def _died(self, kill: Kill | None) -> Death:
        folder = self._folder()
        tries = len([row for row in self.rows if row.life == self.life])
        log = folder / f"{self.subject.log}-{tries:03d}"
        return died(self.subject.command(str(folder)), folder / self.subject.checkpoint, kill, log)

    def _learn(self, death: Death) -> None:
        """The machine's pace, as the last run had it."""
        if death.to_lease is not None:
            self.pace = replace(self.pace, lease=death.to_lease)
        if death.to_lease is not None and death.to_commit is not None:
            rest = death.seconds - death.to_lease - death.to_commit
            self.pace = replace(self.pace, first=death.to_commit)
            if death.code == 0 and death.batches > 4:
                self.pace = replace(self.pace, batch=max(0.1, rest / (death.batches - 1)))

    def _save(self) -> None:
        aside = self.file.with_suffix(".aside")
        held = {"seed": self.seed, "life": self.life, "pace": asdict(self.pace), "rows": [asdict(r) for r in self.rows]}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(held))
        os.rename(aside, self.file)

    def _begun(self) -> bool:
        return any(row.life == self.life for row in self.rows)

    def _batches(self) -> int:
        commits = self._folder() / self.subject.checkpoint / "commits"
        names = os.listdir(commits) if commits.exists() else []
        return max((int(name) for name in names if name.isdigit()), default=-1) + 1

    def _folder(self) -> Path:
        return self.file.with_suffix(".runs") / f"life-{self.life:03d}"
