"""`penstock ui`: the dashboard of a run, in the browser, while it runs and after it has stopped. Without Spark."""

from __future__ import annotations

import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.api.loader import load
from penstock.cli.signals import end_on_signals
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.api.pipeline import Pipeline

EPILOG = """Examples:

* `penstock ui checkpoints/team-scores`
* `penstock ui team_scores.py checkpoints/team-scores`
* `penstock ui checkpoints/team-scores --port 0 --no-browser`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(ui)


def ui(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] CHECKPOINT",
            help="The checkpoint of the run, a folder on this machine; after the file of its pipeline, or FILE:NAME, "
            "the dashboard says exactly why a pane is as it is.",
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="NUMBER", help="The port; 0 takes any free one.")
    ] = 8766,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address; others than this machine's own need --exposed.")
    ] = "127.0.0.1",
    exposed: Annotated[
        bool, typer.Option("--exposed", help="Let other machines reach it: say that it is meant.")
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Say the address and open nothing.")] = False,
) -> None:
    """Open the dashboard of a run: what needs attention, and the plane, live.

    Reads what lies beside the checkpoint and writes nothing; the run may be at work, stopped or finished. It is served
    on this machine alone, to whoever has the address with its key. Numbers for Prometheus are at /metrics. Ctrl-C ends
    it.
    """
    from penstock.checkpoint.status import standing
    from penstock.dashboard.embedded import place_of
    from penstock.dashboard.server import Dashboard
    from penstock.storage.local import local_path
    from penstock.web.server import LOOPBACK

    pipeline, checkpoint = pipeline_of(places)
    standing(checkpoint)
    place = place_of(port, host, exposed=exposed)
    server = Dashboard(local_path(checkpoint) or checkpoint, place, pipeline=pipeline)
    end_on_signals()
    if host not in LOOPBACK:
        print(
            f"warning: whoever reaches {host} and has the key sees keys and rows of this stream, and the key goes "
            "over the network as plain text",
            file=sys.stderr,
        )
    server.start()
    try:
        print(f"the dashboard is at {server.address}\nCtrl-C ends it", flush=True)
        if not no_browser:
            webbrowser.open(server.address)
        threading.Event().wait()
    except KeyboardInterrupt:
        print("\nended", flush=True)
    finally:
        server.stop()


def pipeline_of(places: list[str]) -> tuple[Pipeline | None, str]:
    """The pipeline, where its file is named, and the checkpoint; refused where they do not belong together."""
    from penstock.checkpoint.identity import refuse_foreign
    from penstock.cli.why import checkpoint_store
    from penstock.observability.why.replay import identity_at

    if len(places) > 2:
        raise PenstockError(
            f"{len(places)} places were named",
            "the first is the file of a pipeline, the second its checkpoint",
            "write penstock ui team_scores.py checkpoints/team-scores",
        )
    if len(places) == 1:
        return None, places[0]
    pipeline, store = load(places[0]), checkpoint_store(places[1])
    refuse_foreign(store.root, identity_at(store), pipeline.name, pipeline.flow, None)
    return pipeline, places[1]
