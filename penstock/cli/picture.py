"""`penstock picture`: what does a run look like, with event time across and processing time up?"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.observability.time_plane import Plane
    from penstock.picture import Look

ENDINGS = (".svg", ".png")


def add_to(app: typer.Typer) -> None:
    """The command."""
    example = "penstock picture tests/conformance/book/streaming_systems.toml --case 2-13 -o discarding.png"
    app.command(epilog=f"Example: `{example}`")(picture)


def picture(
    source: Annotated[
        str,
        typer.Argument(
            metavar="CASES", help="A case file (.toml, .json, .yaml), a plane kept as JSON, or a checkpoint."
        ),
    ],
    case: Annotated[
        str | None, typer.Option(help="Which case of the file, by its name or a part of it.", show_default=False)
    ] = None,
    key: Annotated[str | None, typer.Option(help="This key alone.", show_default=False)] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="A file that ends in .svg or .png; - is SVG on stdout.", show_default=False
        ),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Dark, whatever its reader prefers.")] = False,
    width: Annotated[int, typer.Option(help="How wide, in pixels; a PNG has two for each of them.")] = 600,
) -> None:
    """Draw a run: events as dots, the watermark as a line, every pane where it was emitted.

    Plays a case on the reference engine, without Spark; of a checkpoint it draws the sample that its run has kept. An
    SVG is light or dark as its reader prefers.
    """
    from penstock.picture import Look

    target = None if output is None else _target(output)
    look = Look(width, "dark" if dark else "auto")
    plane = _plane(source, case)
    written = write(plane, target or Path(f"{_slug(plane.title) or Path(source).stem}.svg"), look, key=key)
    if written is not None:
        print(f"{written}: {len(plane.dots):,} events, {len(plane.panes):,} panes")


def write(plane: Plane, target: Path, look: Look, *, key: str | None = None) -> Path | None:
    """Draw a plane into a file, by its ending; None where it went to stdout."""
    from penstock.picture import png, svg

    if str(target) == "-":
        sys.stdout.write(svg(plane, look, key=key))
        return None
    drawn = png(plane, look, key=key) if target.suffix == ".png" else svg(plane, look, key=key).encode()
    try:
        target.write_bytes(drawn)
    except OSError as error:
        raise PenstockError(f"{target} cannot be written", str(error), "name another file with -o") from None
    return target


def _target(said: str) -> Path:
    target = Path(said)
    if said != "-" and target.suffix not in ENDINGS:
        raise PenstockError(
            f"{said} does not end in {' or '.join(ENDINGS)}",
            "the ending says what is drawn",
            f"write -o {target.with_suffix('.svg')}, or {target.with_suffix('.png')}",
        )
    return target


def _plane(source: str, case: str | None) -> Plane:
    from penstock.picture.inputs import plane_of

    return plane_of(source, case)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:60]
