"""A service that answers otherwise each time it is asked, and writes down what it said; run, killed and compared."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.connectors.game_scores import game_scores

ROWS, BATCHES = 1_200, 6


@dataclass(frozen=True)
class Fickle:
    """Says something new each time; `said` has a line for each answer. It is down while there is a file `down`."""

    folder: str

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if (Path(self.folder) / "down").exists():
            raise ConnectionError("the service is down")
        answer = uuid.uuid4().hex
        log = os.open(Path(self.folder) / "said", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, f"{' '.join(str(value) for value in row.values())} {answer}\n".encode())
        os.close(log)
        return {"answer": answer}


def said(folder: Path) -> list[str]:
    """Every answer that was given, whoever heard it."""
    file = folder / "said"
    return [line.split()[-1] for line in file.read_text().splitlines()] if file.exists() else []


def pipeline(folder: Path | str, **asked: Any) -> ps.Pipeline:
    """Scores, each with what is said of its user in its batch, to a table."""
    scores = game_scores(rate=100, keys=20, teams=4, realtime=False, events=ROWS)
    given = {"output": "answer string", "on": "user", "retries": 0, **asked}
    rows = scores.event_time("at", watermark=ps.bounded("1 second")).enrich(Fickle(str(folder)), **given)
    return ps.pipeline("fickle", rows.write(ps.sqlite(f"{folder}/a.db", table="said")), shards=2,
                       batch_rows=ROWS // BATCHES)  # fmt: skip


def run(folder: Path | str, **asked: Any) -> Any:
    """Run it until it has caught up."""
    return pipeline(folder, **asked).run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up")
