"""The benchmark of the engine runs and says what it measured; how fast is for `make bench-engine` to say."""

import json
import subprocess
import sys
from pathlib import Path

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
