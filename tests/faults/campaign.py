"""Does a pipeline survive being killed? `python -m tests.faults.campaign --kills 200 --seed 7` kills one and counts.

It goes on from where it was stopped: what was done is in a file, beside it a folder with every life. A life is one
checkpoint: the run is killed (SIGKILL, the whole session), its sinks are looked at, it is started again. Exit code 1
where anything was lost, doubled, torn, or other than what an undisturbed run writes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from penstock.testing.crash.campaign import Campaign, Row, Subject
from penstock.testing.crash.kill_schedule import SHARD_POINTS, STAGE_POINT
from penstock.testing.crash.process import python
from penstock.testing.servers.kafka import broker
from penstock.testing.servers.postgres import database, may_look_into
from tests.faults.reference_check import ReferenceChecker
from tests.faults.scenarios import ids, scores, stages
from tests.faults.scenarios.ids import IdsChecker
from tests.faults.scenarios.scores import ScoresChecker

HEAD = (
    f"{'kill':>5} {'life':>4}  {'where':<44} {'batches':>7} {'restarts':>8} {'lost':>5} {'twice':>5} {'torn':>5}  panes"
)


ROOT = Path(__file__).parents[2]


def scenario(name: str, folder: str) -> list[str]:
    """The command that runs a scenario of ours, wherever it is called: its workers, too, find the tests."""
    return ["env", f"PYTHONPATH={ROOT}", *python("-m", f"tests.faults.scenarios.{name}", folder)]


def every_sink() -> Subject:
    """The pipeline of `scenarios.scores`, which writes to every sink at once."""
    return Subject(
        lambda folder: scenario("scores", folder), ScoresChecker.of, scores.SINKS
    )  # fmt: skip


def between_servers() -> Subject:
    """The pipeline of `scenarios.ids`, from a Kafka broker to PostgreSQL and back to Kafka."""
    return Subject(lambda folder: scenario("ids", folder), IdsChecker.of, ids.SINKS,
                   points=SHARD_POINTS, shows=ids.SHOWS)  # fmt: skip


def every_stage() -> Subject:
    """The pipeline of `scenarios.stages`, which remembers in every way there is; each of its stages is a point more."""
    flow = stages.made(".").flow
    return Subject(
        lambda folder: scenario("stages", folder),
        partial(ReferenceChecker.of, stages.made), stages.killed(),
        points=tuple(STAGE_POINT.format(number) for number in range(len(flow.stages))), shows=stages.SHOWS,
    )  # fmt: skip


SUBJECTS = {"sinks": every_sink, "servers": between_servers, "stages": every_stage}


def beside(file: Path) -> Path:
    """Where the servers of a campaign keep their data: beside its file, or where the database may look into."""
    if may_look_into(file.parent):
        return file.with_suffix(".servers")
    name = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"penstock-kills-{name}")


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """A broker with the ids in it and a database, with their data below a folder, for as long as the kills last."""
    filled = folder / "filled"
    with broker(folder / "kafka") as one, database(folder / "postgres") as db:
        os.environ["KAFKA"], os.environ["POSTGRES"] = one.servers, db.url
        if not filled.exists():
            ids.produce(one.servers)
            filled.touch()
        yield


def line(row: Row) -> str:
    """A row of the table."""
    verdict = row.verdict
    panes = "equal" if verdict.good else f"DIFFER ({verdict.foreign} foreign)"
    number = "" if row.kill is None else str(row.kill)
    return (f"{number:>5} {row.life:>4}  {row.at:<44} {row.batches:>7} {row.restarts:>8} {verdict.lost:>5} "
            f"{verdict.duplicated:>5} {verdict.torn:>5}  {panes}")  # fmt: skip


def summary(rows: Sequence[Row]) -> str:
    """All of it in one line."""
    kills = sum(row.kill is not None for row in rows)
    lives = sum(row.at == "ended" for row in rows)
    lost, twice, torn = (sum(getattr(row.verdict, name) for row in rows) for name in ("lost", "duplicated", "torn"))
    same = all(row.verdict.good for row in rows)
    return (f"{kills} kills, {lives} lives ended: lost {lost}, duplicated {twice}, torn {torn}, panes "
            f"{'equal to the undisturbed run' if same else 'NOT equal to the undisturbed run'}")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill so often as asked, print the table, and say whether nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", type=Path, default=Path("build/faults.json"), help="where progress is kept")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--servers", dest="subject", action="store_const", const="servers", default="sinks",
                       help="kill one from Kafka to PostgreSQL and Kafka instead")  # fmt: skip
    which.add_argument("--stages", dest="subject", action="store_const", const="stages",
                       help="kill one with a stage of every kind instead, at each of them, too")  # fmt: skip
    given = parser.parse_args(arguments)
    # Stopped from outside, it takes the run with it that it was about to kill.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    given.resume.parent.mkdir(parents=True, exist_ok=True)
    with servers(beside(given.resume)) if given.subject == "servers" else nullcontext():
        return _run(Campaign.resumed(SUBJECTS[given.subject](), given.resume, given.seed), given.kills)


def _run(campaign: Campaign, kills: int) -> int:
    print(HEAD)
    for row in campaign.rows:
        print(line(row))
    began = time.monotonic()
    for row in campaign.run(kills):
        print(line(row), flush=True)
        for said in row.verdict.said:
            print(f"      {said}")
    print(f"{summary(campaign.rows)} ({time.monotonic() - began:.0f} s)")
    return 0 if all(row.verdict.good for row in campaign.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
