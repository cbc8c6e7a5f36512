"""`penstock run`: a pipeline from its file to its end, with progress, and a stop that finishes the batch."""

from __future__ import annotations

import enum
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.api.loader import load
from penstock.cli.check import File
from penstock.cli.progress import JsonLines, Lines, Reporter
from penstock.plan.stages import max_bad_of
from penstock.types.durations import not_negative

if TYPE_CHECKING:
    from penstock.api.pipeline import Pipeline
    from penstock.api.progress import Progress
    from penstock.spark.handle import Ended

EPILOG = """Examples:

* `penstock run team_scores.py`
* `penstock run team_scores.py --ui`
* `penstock run team_scores.py --until caught_up --json`
* `penstock run jobs.py:hourly --checkpoint s3a://lake/hourly --master spark://host:7077`
"""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Until(enum.StrEnum):
    """When a run ends by itself."""

    caught_up = "caught_up"
    end = "end"


Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master, such as local[4] or spark://host:7077; default: all cores here."),
]


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(run)


def run(
    file: File,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            "-c",
            metavar="PLACE",
            help="Where the run's memory is kept; default: checkpoints/ and the name.",
        ),
    ] = None,
    batch_every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often a batch begins, at most.")
    ] = "1 second",
    until: Annotated[
        Until | None,
        typer.Option(
            metavar="caught_up|end",
            help="End by itself: when all that is there is read, or when the input has ended and every "
            "window is closed. Without it, it runs on.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a batch on stdout.")] = False,
    ui: Annotated[
        bool, typer.Option("--ui", help="Serve the dashboard beside the run, on this machine alone; says its address.")
    ] = False,
    ui_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="NUMBER",
            help="Its port, with --ui; 0 takes any free one. Without it 8766, or any free one.",
        ),
    ] = None,
    master: Master = None,
    max_bad: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|PERCENT",
            help="How many bad rows of each source are borne, such as 100 or 1%; default: what the pipeline "
            "says. With 100% a run of which all rows are bad ends with exit code 0, too.",
        ),
    ] = None,
) -> None:
    """Run a pipeline until it is stopped.

    Ctrl-C or SIGTERM finishes the batch that runs, says where it stopped and ends with exit code 0; the same command
    goes on from there. A run that ends by itself and could use no row of a source ends with exit code 1.
    On a terminal a panel shows how it stands; elsewhere a line does, every two seconds at most.
    """
    use_master(master)
    pipeline = load(file)
    limit = max_bad_of(int(max_bad) if max_bad is not None and max_bad.isdecimal() else max_bad)
    pipeline = pipeline if limit is None else pipeline.bearing(limit)
    not_negative(batch_every, "batch_every")  # refused before anything is said to start
    place = checkpoint or f"checkpoints/{pipeline.name}"
    with _dashboard(place, ui_port, as_json) if ui else nullcontext():
        who = reporter(pipeline.name, place, as_json)
        watched(pipeline, who, checkpoint=place, batch_every=batch_every, until=until.value if until else None)


def _dashboard(checkpoint: str, port: int | None, as_json: bool) -> AbstractContextManager[None]:
    """The dashboard, as long as the run; its address goes where no machine reads."""
    from penstock.dashboard.beside_run import beside, dashboard_of

    def say(address: str) -> None:
        print(f"the dashboard is at {address}", file=sys.stderr if as_json else sys.stdout, flush=True)

    return beside(dashboard_of(checkpoint, port), say)


def use_master(master: str | None) -> None:
    """Let the session that will be made, by the file or by Penstock, use this master."""
    if master is not None:
        os.environ["PENSTOCK_MASTER"] = master


def reporter(name: str, checkpoint: str, as_json: bool) -> Reporter:
    """Who hears of the progress, by where stdout goes."""
    if as_json:
        return JsonLines(name, sys.stdout)
    if sys.stdout.isatty():
        from rich.console import Console

        from penstock.cli.progress_panel import LivePanel

        return LivePanel(name, checkpoint, Console(highlight=False))
    return Lines(name, checkpoint, sys.stdout)


def watched(pipeline: Pipeline, who: Reporter, *, seconds: float | None = None, **how: Any) -> Ended | None:
    """Run a pipeline, for so many seconds after its first batch if that is said, and tell of it.

    None where it was stopped before it had begun, or by a second Ctrl-C in the middle of a batch.
    """
    # Interrupted while it talks to the JVM, py4j logs a traceback; the interrupt is told here, in a sentence.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    stop = _Stop(who)
    with stop.on_signals():
        who.begin()
        try:
            ended = _ended(pipeline, stop, seconds, how)
        except KeyboardInterrupt:
            logging.disable(logging.NOTSET)
            who.end(None)
            where = (
                "in the middle of a batch; the same command plays it again" if stop.begun else "before the first batch"
            )
            print(f"{pipeline.name}: stopped {where}", flush=True)
            return None
        except BaseException:
            who.end(None)
            raise
    who.end(ended)
    return ended


def _ended(pipeline: Pipeline, stop: _Stop, seconds: float | None, how: dict[str, Any]) -> Ended:
    """Run it to its end, or until a stop is asked for; input that is all there is run as one batch."""
    from penstock.spark.bounded_run import batch_input

    if batch_input(pipeline):
        return pipeline.run(on_progress=stop.heard, **how)
    handle = pipeline.start(on_progress=stop.heard, **how)
    stop.handle = handle
    stop.listen()  # a new SparkContext has taken Ctrl-C for itself
    while True:
        with suppress(TimeoutError):
            return handle.wait(0.2)
        if seconds is not None and stop.begun and time.monotonic() - stop.begun >= seconds:
            stop.ask()


@dataclass
class _Stop:
    """A wish to stop: before batches run a KeyboardInterrupt; then it waits for the batch, the second time not."""

    who: Reporter
    handle: Any = None
    begun: float = 0.0
    asked: bool = False

    def heard(self, progress: Progress) -> None:
        """A batch is committed."""
        self.begun = self.begun or time.monotonic()
        self.who.progress(progress)

    def ask(self) -> None:
        """Let the run stop after the batch."""
        if not self.asked:
            self.asked = True
            self.who.stopping()
            self.handle.ask_to_stop()

    def listen(self) -> None:
        """Hear Ctrl-C and SIGTERM."""

        def hear(*_: object) -> None:
            if self.handle is None or self.asked:
                logging.disable(logging.CRITICAL)  # py4j tells the root logger of a call that was interrupted
                raise KeyboardInterrupt
            self.ask()

        for number in SIGNALS:
            signal.signal(number, hear)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Hear them here, and let others hear them afterwards."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self.listen()
        try:
            yield
        finally:
            for number, old in before.items():
                signal.signal(number, old)
