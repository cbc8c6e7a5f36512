"""The benchmark of the engine runs and says what it measured; how fast is for `make bench-engine` to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from bench import quick
from bench.beside import IN_MEMORY, OURS, ROCKSDB, Figure, Question, result, table
from bench.nexmark import LOOKED_AT, STATELESS, questions
from bench.spark import Nowhere, Run
from bench.state import questions as state_questions
from examples.nexmark.queries import QUERIES

BENCH = Path(__file__).parents[2] / "bench" / "engine.py"


def test_the_benchmark_of_the_engine_runs(tmp_path):
    figures = tmp_path / "engine.json"
    asked = [sys.executable, str(BENCH), "--quick", "--only", "1 k int", "--json", str(figures)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout
    jobs = [figure["job"] for figure in json.loads(figures.read_text())]
    assert [job.split(",")[0] for job in jobs] == [
        "tumbling 10 s", "early and late panes", "sliding 60 s every 1 s", "sessions",
    ]  # fmt: skip
    assert all(job in said for job in jobs)


def test_the_benchmark_of_stages_alone_runs(tmp_path):
    figures = tmp_path / "alone.json"
    for name in ("a join", "q5", "cep3"):
        asked = [sys.executable, "-m", "bench.alone", "--quick", "--only", name, "--json", str(figures)]
        subprocess.run(asked, capture_output=True, check=True, timeout=120, cwd=BENCH.parents[1])
        (figure,) = json.loads(figures.read_text())
        assert name in figure["job"]
        assert figure["events_per_second"] > 0


def ran(**seconds: float) -> Run:
    (who, of_a_batch), *_ = seconds.items()
    return Run(who, [(500_000, 9.0), (500_000, 9.0), (500_000, of_a_batch), (500_000, of_a_batch)], 30.0)


def asked(figure: Figure, *stores: str) -> Question:
    return Question("a join", {}, {OURS: print}, dict.fromkeys(stores, print), figure)


@pytest.mark.parametrize(
    ("figure", "times", "reached"),
    [(Figure(times=1.5), 2.0, True), (Figure(times=2.5), 2.0, False), (Figure(rate=400_000), 2.0, True),
     (Figure(rate=600_000), 2.0, False), (Figure(), 2.0, True)],
)  # fmt: skip
def test_the_faster_store_is_what_is_compared_with_and_the_first_batches_do_not_count(figure, times, reached):
    runs = {OURS: ran(ours=1.0), IN_MEMORY: ran(theirs=3.0), ROCKSDB: ran(theirs=2.0)}
    found = result(asked(figure, IN_MEMORY, ROCKSDB), runs)
    assert found["seconds_per_million"] == {OURS: 2.0, IN_MEMORY: 6.0, ROCKSDB: 4.0}
    assert found["events_per_second"][OURS] == 500_000
    assert (found["times_fastest_other"], found["reached"]) == (times, reached)
    assert ("missed" in table([found])) is not reached


def test_what_spark_cannot_say_is_reported_alone():
    found = result(asked(Figure(rate=100_000)), {OURS: ran(ours=1.0)})
    assert found["times_fastest_other"] is None
    assert "nothing of Spark's says it" in table([found])


def test_every_query_of_nexmark_is_asked_with_the_columns_it_looks_at():
    found = {question.name: question for question in questions(quick=True)}
    assert found.keys() == QUERIES.keys() == LOOKED_AT.keys()
    assert all(found[name].theirs for name in STATELESS)
    for question in (*found.values(), *state_questions(quick=True)):
        streams = [ps.events(data.schema, name=name) for name, data in question.data.items()]
        for answer in question.ours.values():
            ps.pipeline("asked", answer(*streams).write(Nowhere()))


class Stopwatch:
    """A contestant that takes the times it was made with, one a run."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)

    def play(self, job, contestant):
        return self.seconds.pop(0)


def test_the_quick_bench_takes_turns_and_judges_by_the_median_ratio():
    (job,) = (job for job in quick.jobs() if job.title == "nexmark: q3")
    now, before = Stopwatch(9.0, 1.2, 1.3, 4.0), Stopwatch(9.0, 1.0, 1.0, 1.0)
    found = quick.compare(job, {"this tree": (now, "penstock"), "rival": (before, "penstock")}, cold=1, turns=3)
    assert found["seconds_per_million"] == {"this tree": [1.2, 1.3, 4.0], "rival": [1.0, 1.0, 1.0]}
    assert found["ratio"] == 1.3
    assert "SLOWER (limit 1.10)" in quick.row(found, judged=True)
    assert "ok" in quick.row({**found, "ratio": 1.05}, judged=True)
    assert "limit" not in quick.row(found, judged=False)


def test_the_quick_bench_has_a_job_of_each_bench():
    assert {job.bench for job in quick.jobs()} == {"engine", "spark", "kafka", "nexmark", "state"}
    assert {job.limit for job in quick.jobs() if job.bench == "engine"} == {0.05}


def test_the_quick_bench_runs_a_process_for_each_side(tmp_path):
    figures = tmp_path / "quick.json"
    command = [sys.executable, "-m", "bench.quick", "--only", "tumbling 10 s", "--turns", "1", "--json", str(figures)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=BENCH.parents[1])
    (found,) = json.loads(figures.read_text())["results"]
    assert found["job"] in printed.stdout
    assert all(seconds > 0 for some in found["seconds_per_million"].values() for seconds in some)
