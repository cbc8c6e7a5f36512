"""What `penstock demo` runs: a pipeline in a file, which stays in the folder to be read, run again and changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.errors import PenstockError

FILE, DATABASE, TABLE = "team_scores.py", "scores.db", "team_scores"
MADE = (FILE, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", "checkpoint", "late", "quarantine", "__pycache__")
PIPELINE = '''"""The demo: points of each team in every ten seconds of a game that is made up as it goes."""

import penstock as ps

# 2,000 scores a second from four partitions. Most come within a second or so; a few are stragglers, a few cannot be
# read, and after a while partition 3 says nothing for twelve seconds.
scores = ps.game_scores(
    rate=2_000,
    teams=5,
    partitions=4,
    disorder="1 second",
    faults=ps.Faults(
        stragglers=0.001, straggler_delay="20 seconds", bad=0.0002, silent={3: ("40 seconds", "12 seconds")}
    ),
)
totals = (
    scores.event_time("at", watermark=ps.bounded("4 seconds", idle="6 seconds"))
    .key_by("team")
    .window(ps.tumbling("10 seconds"), lateness="10 seconds")
    .trigger(ps.at_watermark(early=ps.every("1 second"), late=ps.count(1)))
    .accumulating()
    .aggregate(points=ps.sum("points"), plays=ps.rows())
)
team_scores = ps.pipeline(
    "team-scores",
    totals.write(ps.sqlite("@folder@/scores.db", table="team_scores", history=True)),
    totals.late.write(ps.files("@folder@/late", format="json")),
    totals.quarantine.write(ps.files("@folder@/quarantine", format="json")),
    batch_rows=100_000,
)
'''


def fresh(folder: Path) -> Path:
    """Write the pipeline's file into the folder; what an earlier demo made there is removed, anything else is not."""
    strangers = sorted(one.name for one in folder.iterdir() if one.name not in MADE) if folder.is_dir() else []
    if strangers or (folder.exists() and not folder.is_dir()):
        raise PenstockError(
            f"the folder {folder} holds something else than a demo: {', '.join(strangers[:3]) or 'it is a file'}",
            "the demo begins with an empty folder and removes only what a demo made",
            "name another one: penstock demo --folder scores-demo",
        )
    for name in MADE:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    file.write_text(PIPELINE.replace("@folder@", folder.as_posix()), encoding="utf-8")
    return file
