"""`penstock why`: which events, batches, watermark and trigger made a pane, and why was an event late?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.api.loader import load
from penstock.errors import PenstockError
from penstock.humanize import worded

if TYPE_CHECKING:
    from penstock.observability.why.text import Told
    from penstock.storage.local import Store

EPILOG = """Examples:

* `penstock why team_scores.py checkpoints/team-scores --key red --window "2026-05-01 12:00:00"`
* `penstock why team_scores.py checkpoints/team-scores --key red`
* `penstock why team_scores.py checkpoints/team-scores --event scores/0/1174 --json`
* `penstock why checkpoints/team-scores --key red`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(why)


def why(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] CHECKPOINT",
            help="The file of the pipeline, or FILE:NAME, and its checkpoint; without the file what was kept is told.",
        ),
    ],
    key: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="The key; once for each of its columns, in order.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="START", help="The window: its start, or 'START to END', or global. Without it: which."),
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="PARTITION/OFFSET", help="Ask about an event instead: was it late, and why?")
    ] = None,
    stage: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Which stage, where there are several of windows.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with every event, for machines.")] = False,
) -> None:
    """Say which events, batches, watermark and trigger made each pane of a window, or why an event was late.

    Reads the checkpoint, and with the pipeline's file its sources again, between the offsets of each batch: the
    reference engine then plays the batches with the clocks that were written down. Nothing is written, and no Spark is
    started. Without the file the answer is made of what was kept while it ran, which is a sample, and says so.
    """
    if len(places) > 2:
        raise PenstockError(
            f"{len(places)} places were named",
            "the first is the file of a pipeline, the second its checkpoint",
            "write penstock why team_scores.py checkpoints/team-scores --key red",
        )
    told = _told(places, tuple(key or ()), window, event, stage)
    if as_json:
        print(json.dumps(worded(told.plain()), indent=2, default=str))
        return
    from penstock.observability.why.text import lines

    for line in lines(told):
        print(line)


def _told(places: list[str], key: tuple[str, ...], window: str | None, event: str | None, stage: int | None) -> Told:
    from penstock.observability.why.batches import observations
    from penstock.observability.why.event_fate import why_event
    from penstock.observability.why.from_samples import sampled_event, sampled_window
    from penstock.observability.why.panes import why_window
    from penstock.observability.why.replay import replay_of

    store = checkpoint_store(places[-1])
    if len(places) == 2:
        replay = replay_of(load(places[0]), store, stage)
        return why_event(replay, event) if event is not None else why_window(replay, key, window)
    seen, number = observations(store), (stage or 1) - 1
    if event is not None:
        return sampled_event(seen, event, number)
    return sampled_window(seen, " · ".join(key), window, number)


def checkpoint_store(checkpoint: str) -> Store:
    """The files of a checkpoint on this machine, without Spark."""
    from penstock.observability.why.replay import identity_at
    from penstock.storage.local import LocalStore, local_path

    local = local_path(checkpoint)
    if local is None:
        raise PenstockError(
            f"the checkpoint {checkpoint} is not on a disk of this machine",
            "what was observed, clocks and offsets are read there without Spark",
            "copy its folders penstock and offsets to a disk, and name that",
        )
    store = LocalStore(local)
    identity_at(store)
    return store
