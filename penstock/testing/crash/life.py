"""One run of a user's pipeline that may be killed: `python -m penstock.testing.crash.life RUNS FOLDER`.

It plays the tape in RUNS, writes below FOLDER, and goes on from wherever it was killed until every window is closed.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.api.pipeline import Pipeline
from penstock.api.progress import Progress
from penstock.plan.stages import ALL
from penstock.storage.local import CheckpointError
from penstock.testing.crash.input_tape import Tape
from penstock.testing.crash.redirect import kept, life_of

SETTINGS, TAPE, CLOCKS = "settings.json", "tape.json", "clocks.json"
CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Settings:
    """What every life of a campaign is told."""

    file: str
    pipeline: str
    without: list[str]
    token: str

    def save(self, runs: Path) -> None:
        """Write it down."""
        (runs / SETTINGS).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, runs: Path) -> Settings:
        """Read it again."""
        return cls(**json.loads((runs / SETTINGS).read_text()))


def pipeline_of(runs: Path, folder: Path) -> Pipeline:
    """The user's pipeline as that life runs it."""
    from penstock.api.loader import load

    settings = Settings.load(runs)
    pipeline = load(settings.file)
    return life_of(pipeline, Tape.load(runs / TAPE), folder, kept(pipeline, settings.without), settings.token)


def main(runs: str, folder: str) -> int:
    """Run until the tape has ended, then close every window."""
    from penstock.error_display import tell
    from penstock.plan.stages import ALL
    from penstock.storage.local import CheckpointError

    def told(progress: Progress) -> None:
        print(json.dumps(progress.plain()), flush=True)

    os.environ["PENSTOCK_CLOCK_SHIFT"] = str(Path(runs) / CLOCKS)
    try:
        # A life that is cut short may read nothing but bad rows.
        whole = pipeline_of(Path(runs), Path(folder)).bearing(ALL, where_unsaid=True)
        for until in ("caught_up", "end"):
            print(whole.run(checkpoint=f"{folder}/{CHECKPOINT}", batch_every="0", until=until, on_progress=told))
    except CheckpointError as error:
        if "is finished" in error.what:
            return 0
        tell(error)
        return 1
    except Exception as error:
        tell(error)
        return 1
    return 0


def run_out(pipeline: Pipeline, folder: str) -> None:
    """Run until the source is drained, then close every window; one that had ended before says so."""

    def told(progress: Progress) -> None:
        print(json.dumps(progress.plain()), flush=True)

    piecemeal = pipeline.bearing(ALL, where_unsaid=True)  # a life that is cut short may read nothing but bad rows
    try:
        for until in ("caught_up", "end"):
            print(piecemeal.run(checkpoint=f"{folder}/checkpoint", batch_every="0", until=until, on_progress=told))
    except CheckpointError as error:
        if "is finished" not in str(error):
            raise
        print(error)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
