"""`penstock play`: every core idea as a thing to bend, in the browser. Without Spark."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from penstock.cli.signals import end_on_signals

EPILOG = """Examples:

* `penstock play`
* `penstock play --port 0 --no-browser`
"""


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog=EPILOG)(play)


def play(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="NUMBER", help="The port on this machine; 0 takes any free one.")
    ] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Say the address and open nothing.")] = False,
) -> None:
    """Open the playground: windows, watermarks, panes and faults to bend, played by the reference engine.

    It is served on this machine alone (127.0.0.1), to whoever has the address with its key. Starts no Spark, reads and
    writes no file. Ctrl-C ends it.
    """
    from penstock.playground.server import Playground

    server = Playground(port)
    end_on_signals()
    try:
        with server:
            print(f"the playground is at {server.address}\nCtrl-C ends it", flush=True)
            if not no_browser:
                webbrowser.open(server.address)
            server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        print("\nended", flush=True)
