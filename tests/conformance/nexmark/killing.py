"""Each answer is the same if a run is killed: every query once, in the middle.

    python -m tests.conformance.nexmark.killing

The batch in the middle has begun when the run is killed, and Spark has not committed it. It is started again, runs to
the end, and must hold what the reference gives for the same batches under the same clocks: every row, and what stands.
It goes on from where it was stopped: what was found of a query lies in its folder. Exit code 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import penstock as ps
from examples.nexmark.generator import nexmark
from examples.nexmark.queries import QUERIES
from examples.nexmark.site import Site
from penstock.testing.crash.life import run_out
from penstock.testing.crash.process import Kill, died, python
from penstock.testing.crash.redirect import with_history
from tests.faults.reference_check import ReferenceChecker, beats_of, expected

ROOT = Path(__file__).parents[3]
BATCH_ROWS = 1_000
BATCHES = 6
MIDDLE = 3
POINTS = ("task:read", "task:step", "batch:collected", "clock:before", "clock:after", "batch:end")
HEAD = f"{'query':>6}  {'killed at':<18} {'batches':>7} {'rows':>6} {'lost':>5} {'twice':>5} {'torn':>5}  answer"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a query that was killed and started again."""

    query: str
    at: str
    batches: int
    rows: int
    lost: int
    twice: int
    torn: int
    foreign: int
    said: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether it says what the reference says, each row once."""
        return not (self.lost or self.twice or self.torn or self.foreign or self.said)

    def __str__(self) -> str:
        answer = "equal" if self.good else f"DIFFERS: {self.foreign} foreign {' '.join(self.said)[-2000:]}"
        return (f"{self.query:>6}  {self.at:<18} {self.batches:>7} {self.rows:>6} {self.lost:>5} {self.twice:>5} "
                f"{self.torn:>5}  {answer}")  # fmt: skip


def made(query: str, folder: str) -> ps.Pipeline:
    """A query over events that come out of order, every answer beside those that stand."""
    site = Site(nexmark(events=BATCHES * BATCH_ROWS, rate=100, generators=2, group=100))
    output = with_history(QUERIES[query](site).write(ps.sqlite(f"{folder}/answers.db", table=query)))
    return ps.pipeline(f"nexmark-{query}", output, batch_rows=BATCH_ROWS, shards=2)


def live(query: str, folder: str) -> None:
    """Run a query until all is written, from wherever it was killed."""
    run_out(made(query, folder), folder)


def kill_of(query: str) -> Kill:
    """Where a query is killed: each point of a batch has its turn."""
    return Kill(POINTS[list(QUERIES).index(query) % len(POINTS)], MIDDLE)


def killed(query: str, folder: Path) -> Found:
    """Run a query, kill it, run it to its end, and look at what it wrote."""
    command = python(
        "-c", "import sys; from tests.conformance.nexmark.killing import live; live(*sys.argv[1:])", query, str(folder)
    )
    checkpoint, kill = folder / "checkpoint", kill_of(query)
    death = died(command, checkpoint, kill, folder / "log-killed", environment={"PYTHONPATH": str(ROOT)})
    if not death.killed or death.batches != MIDDLE:
        return Found(query, str(kill), death.batches, 0, 0, 0, 0, 0, (f"it was not killed there: {death.said}",))
    ended = died(command, checkpoint, None, folder / "log-ended", environment={"PYTHONPATH": str(ROOT)})
    if ended.code:
        return Found(query, str(kill), ended.batches, 0, 0, 0, 0, 0, (f"it did not go on: {ended.said}",))
    right = expected(partial(made, query), beats_of(checkpoint))
    verdict = ReferenceChecker(partial(made, query), right).check(str(folder), ended=True)
    return Found(query, str(kill), ended.batches, right.outputs[0].rows, verdict.lost, verdict.duplicated, verdict.torn,
                 verdict.foreign, verdict.said)  # fmt: skip


def found(queries: Sequence[str], folder: Path) -> Iterator[Found]:
    """Each query in its turn; those that were killed before are only told of."""
    for query in queries:
        file = folder / query / "found.json"
        if file.exists():
            held = json.loads(file.read_text())
            yield Found(**{**held, "said": tuple(held["said"])})
            continue
        # What an interrupted attempt has left is its own: another begins anew.
        attempts = len(list((folder / query).glob("life-*")))
        one = killed(query, folder / query / f"life-{attempts}")
        file.write_text(json.dumps(asdict(one)))
        yield one


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill each query that is asked for, print the table, and say whether every answer is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.nexmark.killing", description=__doc__)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="all of them, unless some are named")
    parser.add_argument("--resume", type=Path, default=Path("build/faults-nexmark"), help="where progress is kept")
    given = parser.parse_args(arguments)
    unknown = [query for query in given.queries if query not in QUERIES]
    if unknown:
        parser.error(f"there is no query {unknown[0]!r}: {', '.join(QUERIES)}")
    # Stopped from outside, it takes the run with it that it was about to kill.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(HEAD)
    began, told = time.monotonic(), []
    for one in found(given.queries or list(QUERIES), given.resume):
        told.append(one)
        print(one, flush=True)
    wrong = [one.query for one in told if not one.good]
    print(f"{len(told)} queries killed: {f'NOT right: {wrong}' if wrong else 'every answer is that of the reference'} "
          f"({time.monotonic() - began:.0f} s)")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
