"""How a pipeline that is killed is run: from wherever it was, to the end of its input, telling of each batch."""

from __future__ import annotations

import json

from penstock.api.pipeline import Pipeline
from penstock.api.progress import Progress
from penstock.plan.stages import ALL
from penstock.storage.local import CheckpointError


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
