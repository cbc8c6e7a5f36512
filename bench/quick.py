"""A short form of every bench: one job of each, five turns, beside Spark or beside another commit of this repository.

Use:

    python -m bench.quick [--against COMMIT] [--turns 5] [--only TEXT] [--json FILE]

It takes at most ten minutes on two idle cores. With `--against` this tree and the commit each have a process with a
session of its own; they take turns, and the ratio is the median over the turns. Times are those of warm batches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from bench import beside, engine, kafka, nexmark, spark, state
from bench.beside import IN_MEMORY, OURS
from bench.figures import keep
from penstock.testing.servers.kafka import broker
from penstock.testing.servers.maven import jars

ROOT = Path(__file__).parent.parent
TURNS = 5
COLD_TURNS = 3  # of the first job on Spark, which also warms the JVM; of each other job one
KERNELS, ON_SPARK = 0.05, 0.10  # how much slower than the other commit is still noise
BARE = "bare group-by"


class Player:
    """Plays jobs in its process: a session that stays, files of events, the address of a broker."""

    def __init__(self, data: Path, servers: str) -> None:
        self.data, self.servers = data, servers
        self.batches: dict[tuple[int, bool], Any] = {}

    @cached_property
    def session(self) -> Any:
        """A session that also has Spark's Kafka connector."""
        return kafka.connected_session(jars("spark-kafka-avro-4.2.0", *kafka.CONNECTOR, alone=True))

    def play_kernel(self, name: str, contestant: str) -> float:
        """Seconds a million rows through the columnar engine alone, or a bare group-by of the same rows."""
        (job,) = (job for job in engine.jobs() if job.name == name)
        warm, count = 3, 9
        if (job.keys, job.text) not in self.batches:
            self.batches = {(job.keys, job.text): engine.batches(job.keys, job.text, count)}
        rows = self.batches[job.keys, job.text]
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            if contestant == OURS:
                seconds, _ = engine.engine_seconds(job.panes, rows, warm)
            else:
                seconds = engine.bare_seconds(rows, warm)
        finally:
            pa.set_cpu_count(threads)
        return 1e6 * seconds / (engine.ROWS * (count - warm))

    def play_files(self, name: str, contestant: str) -> float:
        """A job of `bench.spark` over Parquet files."""
        (job,) = (job for job in spark.JOBS if job.name == name)
        job = replace(job, data=replace(job.data, events=5_000_000))
        files = self.data / f"{job.data.keys}-{job.data.events}"
        spark.write(job.data, files)
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            return spark.RUNNERS[contestant](self.session, job, files, Path(scratch), contestant).warm

    def play_kafka(self, name: str, contestant: str) -> float:
        """A job of `bench.kafka`, whose topic is there."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            run = kafka.RUNNERS[contestant]
            return run(self.session, _Address(self.servers), kafka_job(name), Path(scratch)).warm

    def play_question(self, question: beside.Question, contestant: str) -> float:
        """A question of `bench.nexmark` or `bench.state`."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            files = question.kept(self.data)
            return beside.run(self.session, question, contestant, files, Path(scratch)).warm


@dataclass(frozen=True)
class _Address:
    """As much of a broker as a reader of it needs."""

    servers: str


@dataclass(frozen=True)
class Job:
    """A line of the table: whose bench it is from, how it is played, and how much slower it may have become."""

    bench: str
    name: str
    play: Callable[[Player, str], float]
    rival: str = IN_MEMORY
    limit: float = ON_SPARK

    @property
    def title(self) -> str:
        """What the table calls it."""
        return f"{self.bench}: {self.name}"


def kafka_job(name: str) -> kafka.Job:
    """A job of `bench.kafka` with two million events, in batches of half a million."""
    (job,) = (job for job in kafka.JOBS if job.name == name)
    return replace(job, topic=replace(job.topic, events=2_000_000), batch=500_000)


def jobs() -> Iterator[Job]:
    """One job or a few of each bench, those that need no JVM first."""
    for name in ("tumbling 10 s, 1 k int keys", "early and late panes, 1 M text keys", "sessions, 1 k int keys"):
        yield Job("engine", name, _of(Player.play_kernel, name), BARE, KERNELS)
    yield Job("spark", "tumbling, 1 k keys", _of(Player.play_files, "tumbling, 1 k keys"))
    yield Job("kafka", "JSON, 1 k keys", _of(Player.play_kafka, "JSON, 1 k keys"))
    for question in [*nexmark.questions(quick=False), *state.questions(quick=False)]:
        if question.name in ("q3", "q5", "q17", "dedup"):
            bench = "state" if question.name == "dedup" else "nexmark"
            yield Job(bench, question.name, _of(Player.play_question, _short(question)))


def _of(play: Callable[[Player, Any, str], float], what: Any) -> Callable[[Player, str], float]:
    return lambda player, contestant: play(player, what, contestant)


def _short(question: beside.Question) -> beside.Question:
    """A question with four batches, of which the last two count."""
    files = {name: replace(data, events=8 * data.rows) for name, data in question.data.items()}  # type: ignore[type-var]
    return replace(question, data=files)


class Contestant:
    """A process that plays jobs of a tree, asked through pipes; what it prints goes to a log."""

    def __init__(self, label: str, tree: Path, data: Path, servers: str, log: Path) -> None:
        self.label, self.log = label, log
        answers, answering = os.pipe()
        command = [sys.executable, "-m", "bench.quick", "--player", str(answering), "--data", str(data),
                   "--servers", servers]  # fmt: skip
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, stdin=subprocess.PIPE, stdout=out,
                stderr=out, pass_fds=(answering,), text=True,
            )  # fmt: skip
        os.close(answering)
        self.answers = os.fdopen(answers)

    def play(self, job: Job, contestant: str) -> float:
        """Seconds a million events of one run."""
        assert self.process.stdin is not None
        print(json.dumps([job.title, contestant]), file=self.process.stdin, flush=True)
        answer = self.answers.readline()
        if not answer:
            raise SystemExit(f"{self.label} ended in {job.title}:\n{self.log.read_text()[-3000:]}")
        return float(json.loads(answer))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.answers.close()


def serve(player: Player, answers: int) -> None:
    """Play what the lines of standard input ask for."""
    known = {job.title: job for job in jobs()}
    with os.fdopen(answers, "w") as out:
        for line in sys.stdin:
            title, contestant = json.loads(line)
            print(json.dumps(known[title].play(player, contestant)), file=out, flush=True)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The tree of a commit, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), commit], cwd=ROOT, check=True)
        try:
            if not (tree / "bench" / "quick.py").exists():
                raise SystemExit(
                    f"{commit} cannot be compared with: it has no bench/quick.py\n"
                    "each side plays the jobs of its own tree\n"
                    "name a commit since `make bench-quick` came"
                )
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def compare(job: Job, sides: Mapping[str, tuple[Contestant, str]], cold: int, turns: int) -> dict[str, Any]:
    """A job in turns, the first ones uncounted; each turn begins with the other side, so that a drift hurts both."""
    seconds: dict[str, list[float]] = {label: [] for label in sides}
    for turn in range(cold + turns):
        for label in sorted(sides, reverse=bool(turn % 2)):
            contestant, who = sides[label]
            taken = contestant.play(job, who)
            if turn >= cold:
                seconds[label].append(taken)
    ours, other = seconds.values()
    ratio = median(mine / theirs for mine, theirs in zip(ours, other, strict=True))
    figures = {label: [round(taken, 4) for taken in some] for label, some in seconds.items()}
    return {"job": job.title, "seconds_per_million": figures, "ratio": round(ratio, 3), "limit": 1 + job.limit}


def row(found: Mapping[str, Any], judged: bool) -> str:
    """A line of the table; where it is a commit beside which this tree stands, with the verdict."""
    ours, other = (median(some) for some in found["seconds_per_million"].values())
    line = f"{found['job']:44} {ours:9.3f} {other:9.3f} {found['ratio']:7.2f}"
    if judged:
        line += f"  {'ok' if found['ratio'] <= found['limit'] else 'SLOWER'} (limit {found['limit']:.2f})"
    return line


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="beside this commit instead of beside Spark")
    parser.add_argument("--turns", type=int, default=TURNS, help="that count, of each side; %(default)s")
    parser.add_argument("--only", default="", help="only jobs whose line has this text")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench-data")
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    parser.add_argument("--player", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.player is not None:
        serve(Player(options.data, options.servers), options.player)
        return 0
    begun = time.monotonic()
    wanted = [job for job in jobs() if options.only in job.title]
    results = list(_measured(wanted, options))
    slower = [found["job"] for found in results if found["ratio"] > found["limit"]] if options.against else []
    print(f"{time.monotonic() - begun:.0f} s; slower than its limit: {', '.join(slower) or 'nothing'}"
          if options.against else f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    keep({"machine": spark.machine(), "against": options.against, "results": results}, options.json)
    return 1 if slower else 0


def _measured(wanted: list[Job], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        servers = ""
        if any(job.bench == "kafka" for job in wanted):
            running = stack.enter_context(broker())
            servers = running.servers
            kafka.fill(running, kafka_job("JSON, 1 k keys").topic)
        here = Contestant("this tree", ROOT, options.data, servers, folder / "here.log")
        stack.callback(here.close)
        there = here
        if options.against:
            tree = stack.enter_context(checked_out(options.against))
            there = Contestant(options.against, tree, options.data, servers, folder / "there.log")
            stack.callback(there.close)
        print(f"{'seconds a million events (median)':44} {'this tree':>9} {options.against or 'rival':>9} {'ratio':>7}")
        warm = False
        for job in wanted:
            other = (there, OURS) if options.against else (here, job.rival)
            cold = 1 if job.bench == "engine" or warm else COLD_TURNS
            warm = warm or job.bench != "engine"
            found = compare(job, {"this tree": (here, OURS), "rival": other}, cold, options.turns)
            print(row(found, bool(options.against)), flush=True)
            yield found


if __name__ == "__main__":
    sys.exit(main())
