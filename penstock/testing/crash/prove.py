"""Does a user's pipeline survive being killed? It is killed at named points and seeded moments, and its sinks compared.

First the sources say what a few batches would read, and that is kept. The pipeline then plays these batches once
undisturbed, and in one life after another in which it is killed (SIGKILL, every process of it) and started again. Each
life has a checkpoint and sinks of its own; what is in production is read, and never written to.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.testing.crash.campaign import FAILED, Campaign, Row, Subject
from penstock.testing.crash.compare_outputs import OutputsChecker
from penstock.testing.crash.input_tape import Tape, recorded
from penstock.testing.crash.kill_schedule import SHARD_POINTS
from penstock.testing.crash.life import CHECKPOINT, CLOCKS, TAPE, Settings, pipeline_of
from penstock.testing.crash.process import python
from penstock.testing.crash.redirect import kept
from penstock.testing.crash.sink_rows import forget

HEAD = f"{'kill':>5} {'life':>4}  {'point':<58} {'batches':>7} {'lost':>5} {'doubled':>7} {'torn':>5}"
KILLS, SEED, BATCHES, BATCH_ROWS = 50, 7, 12, 1_000
ENOUGH = 3  # lives that fail by themselves
MAY = {"at_least_once": "doubled", "at_most_once": "lost"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be proven, and how hard."""

    file: str
    kills: int = KILLS
    seed: int = SEED
    batches: int = BATCHES
    batch_rows: int | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """What was tried, and what was found."""

    pipeline: str
    seed: int
    read: int
    whole: bool
    compared: tuple[str, ...]
    left_out: Mapping[str, str]
    rows: Sequence[Row] = field(default_factory=tuple)
    folder: str = ""
    delivery: str = "exactly_once"

    @property
    def good(self) -> bool:
        """Whether nothing was lost, doubled, torn or other than in the undisturbed run, but for what is promised."""
        return all(kept_promise(row, self.delivery) for row in self.rows)

    @property
    def kills(self) -> int:
        """How often it was killed."""
        return sum(row.kill is not None for row in self.rows)

    @property
    def lives(self) -> int:
        """How many lives came to their end."""
        return sum(row.at == "ended" for row in self.rows)

    @property
    def points(self) -> dict[str, int]:
        """The points at which it was killed and how often at each; the others were moments between them."""
        named = (_point(row).rpartition("@")[0] for row in self.rows if row.kill is not None)
        return dict(sorted(Counter(name or "a moment" for name in named).items()))

    def counted(self, what: str) -> int:
        """How many rows are `lost`, `duplicated`, `torn` or `foreign` in all."""
        return sum(getattr(row.verdict, what) for row in self.rows)

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {
            "good": self.good,
            "pipeline": self.pipeline,
            "delivery": self.delivery,
            "seed": self.seed,
            "kills": self.kills,
            "lives": self.lives,
            "lost": self.counted("lost"),
            "doubled": self.counted("duplicated"),
            "torn": self.counted("torn"),
            "different": self.counted("foreign"),
            "points": self.points,
            "read": self.read,
            "all_read": self.whole,
            "compared": list(self.compared),
            "left_out": dict(self.left_out),
            "folder": self.folder,
            "rows": [asdict(row) for row in self.rows],
        }

    def before(self) -> list[str]:
        """What is compared, in lines for people."""
        part = "all that its sources have" if self.whole else "the first batches of what its sources have"
        lines = [f"{self.pipeline}: {self.read:,} rows, {part}; with the undisturbed run are compared"]
        lines += [f"  {one}" for one in self.compared]
        if self.delivery in MAY:
            lines.append(f"  its delivery is {self.delivery.replace('_', ' ')}: rows may be {MAY[self.delivery]}")
        return lines + [f"  not compared: {name}: {why}" for name, why in self.left_out.items()]

    def summary(self) -> list[str]:
        """What was found, in lines for people."""
        points = {name: times for name, times in self.points.items() if name != "a moment"}
        moments = self.points.get("a moment", 0)
        lost, doubled, torn = (self.counted(what) for what in ("lost", "duplicated", "torn"))
        found = (
            f"{_many(self.kills, 'kill', 'kills')} in {_many(self.lives, 'life', 'lives')}: "
            f"lost {lost}, doubled {doubled}, torn {torn}"
        )
        same = all(row.verdict.good for row in self.rows)
        right = "every output equals the undisturbed run" if same else f"that is {self.delivery.replace('_', ' ')}"
        lines = [f"{found}; {right if self.good else 'NOT equal: see above'}"]
        lines += [f"points tried: {', '.join(f'{name} ({times})' for name, times in points.items())}"] if points else []
        lines += [f"and {_many(moments, 'moment', 'moments')}, of seed {self.seed}"] if moments else []
        return lines + ([f"everything is kept in {self.folder}"] if self.folder else [])

    def __str__(self) -> str:
        shown = [text for row in self.rows for text in lines_of(row, self.delivery)]
        return "\n".join([*self.before(), HEAD, *shown, *self.summary()])


def prove(
    asked: Asked,
    *,
    progress: Path | None = None,
    began: Callable[[Proof], None] = lambda proof: None,
    on_row: Callable[[Proof, Row], None] = lambda proof, row: None,
) -> Proof:
    """Kill a pipeline so often as asked, and say what was found.

    `progress` is a file from which it goes on; without it nothing stays, unless something was found to be wrong.
    """
    aside = None if progress is not None else Path(tempfile.mkdtemp(prefix="penstock-prove-"))
    file = (progress or Path(str(aside), "prove.json")).absolute()
    proof = None
    try:
        proof = _proven(asked, file, began, on_row)
    finally:
        if aside is not None and (proof is None or proof.good):
            _forget(file.with_suffix(".runs"))
            shutil.rmtree(aside, ignore_errors=True)
    return proof if progress is None and proof.good else replace(proof, folder=str(file.with_suffix(".runs")))


def kept_promise(row: Row, delivery: str) -> bool:
    """Whether the run went on, and what was found is what the pipeline's delivery promises."""
    verdict = row.verdict
    if row.at.startswith(FAILED):
        return False
    if delivery == "at_least_once":
        return not (verdict.lost or verdict.torn or verdict.foreign or verdict.said)
    if delivery == "at_most_once":
        return not (verdict.duplicated or verdict.foreign)
    return verdict.good


def lines_of(row: Row, delivery: str = "exactly_once") -> list[str]:
    """A row of the table, and what was said of it."""
    verdict = row.verdict
    number = "" if row.kill is None else str(row.kill)
    wrong = "" if kept_promise(row, delivery) else "  DIFFERENT"
    return [
        f"{number:>5} {row.life:>4}  {_point(row):<58} {row.batches:>7} {verdict.lost:>5} {verdict.duplicated:>7} "
        f"{verdict.torn:>5}{wrong}",
        *(f"      {said}" for said in verdict.said),
    ]


def _many(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _point(row: Row) -> str:
    """Where it was killed, without what only the table of that life has in its name."""
    return re.sub(r"_prove_[0-9a-f]+_life[0-9]+", "", row.at)


def _proven(asked: Asked, file: Path, began: Callable[[Proof], None], on_row: Callable[[Proof, Row], None]) -> Proof:
    runs = file.with_suffix(".runs")
    settings, tape, left_out, delivery = _prepared(asked, runs)
    subject = Subject(
        lambda folder: python("-m", "penstock.testing.crash.life", str(runs), folder),
        partial(OutputsChecker.of, runs, settings.token),
        (),
        CHECKPOINT,
    )
    campaign = Campaign.resumed(subject, file, asked.seed)
    try:
        checker = campaign.undisturbed()
    except AssertionError as error:
        raise _fails(settings.file, error) from None
    assert isinstance(checker, OutputsChecker)
    campaign.subject = replace(
        subject,
        sinks=checker.written,
        checker=lambda folder, log: checker,
        points=SHARD_POINTS if checker.by_tasks else (),
    )
    proof = Proof(
        settings.pipeline,
        asked.seed,
        tape.rows,
        tape.whole,
        tuple(map(str, checker.outputs)),
        left_out,
        delivery=delivery,
    )
    began(proof)
    for row in list(campaign.rows):
        on_row(proof, row)
    for row in campaign.run(asked.kills):
        on_row(proof, row)
        if sum(one.at.startswith(FAILED) for one in campaign.rows) >= ENOUGH:
            break  # it would fail for ever
    return replace(proof, rows=tuple(campaign.rows))


def _prepared(asked: Asked, runs: Path) -> tuple[Settings, Tape, dict[str, str], str]:
    """What every life is told: as an interrupted campaign left it, or new."""
    from penstock.api.loader import load

    pipeline = load(asked.file)
    chosen = kept(pipeline, asked.without)
    if (runs / TAPE).exists():
        settings = Settings.load(runs)
        if (settings.file, settings.without) != (asked.file, list(asked.without)):
            raise PenstockError(
                f"{runs} holds lives of {settings.file}",
                "a campaign goes on with the pipeline and the outputs it was begun with",
                "name another file, or remove that folder and the file beside it",
            )
        return settings, Tape.load(runs / TAPE), chosen.left_out, pipeline.delivery
    rows = asked.batch_rows or pipeline.batch_rows or BATCH_ROWS
    tape = recorded(pipeline, asked.batches, rows)
    settings = Settings(asked.file, pipeline.name, list(asked.without), uuid.uuid4().hex[:8])
    runs.mkdir(parents=True, exist_ok=True)
    settings.save(runs)
    (runs / CLOCKS).write_text(json.dumps(tape.clocks))
    tape.save(runs / TAPE)
    return settings, tape, chosen.left_out, pipeline.delivery


def _forget(runs: Path) -> None:
    """Remove the tables and topics of every life; whatever cannot be reached now stays, under names that say whose."""
    from penstock.coordinator.sink_targets import targets_of

    for folder in runs.glob("*/"):
        for _, sink, target in targets_of(pipeline_of(runs, folder)):
            with suppress(Exception):
                forget(sink, target)


def _fails(file: str, error: AssertionError) -> PenstockError:
    said = str(error).splitlines()
    begins = max((i for i, line in enumerate(said) if line.startswith("error: ")), default=None)
    told = said[begins:] if begins is not None else said[-5:]
    return PenstockError(
        f"{file} fails when nothing disturbs it",
        " ".join(" ".join(told).split())[:1000],
        "mend that first; penstock run shows it too",
    )
