"""`penstock verify`: does the stream give the answers that a batch gives, and those of Spark SQL?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.api.loader import load
from penstock.cli.check import File
from penstock.cli.run import Master, use_master
from penstock.humanize import clock, many, span

if TYPE_CHECKING:
    from penstock.spark.verify import Comparison, Verified


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog="Example: `penstock verify team_scores.py --rows 20000`")(verify)


def verify(
    file: File,
    rows: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="About how many rows to take of a source that does not end.")
    ] = 50_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
    master: Master = None,
) -> None:
    """Run a pipeline as a stream and as a batch over the same rows, and compare the final answers.

    Where Spark SQL can ask the same question (tumbling, sliding and session windows; sum, count, min, max, mean, rows),
    its groupBy(window(...)) is compared, too. Nothing is written: neither to the pipeline's sinks nor to a checkpoint.
    Exit code 1 where an answer differs.
    """
    use_master(master)
    pipeline = load(file)
    if not as_json and sys.stdout.isatty():
        from rich.console import Console

        with Console().status("starting Spark, then running it in four ways"):
            found = _verified(pipeline, rows)
    else:
        found = _verified(pipeline, rows)
    if as_json:
        print(json.dumps(_plain(found), indent=2, default=str))
    else:
        _tell(pipeline.name, found)
    if not found.equal:
        raise typer.Exit(1)


def _verified(pipeline: Any, rows: int) -> Verified:
    from penstock.spark.verify import verify as verified

    return verified(pipeline, rows=rows)


def _tell(name: str, found: Verified) -> None:
    print(f"{name}: {many(found.rows, 'row')}, as a stream in {span(found.seconds * 1e6)}, compared with")
    for one in found.comparisons:
        _tell_one(one, found.columns)
    print("equal" if found.equal else "different: see above")


def _tell_one(one: Comparison, columns: tuple[str, ...]) -> None:
    if one.skipped is not None:
        typer.secho("  left out   ", fg="yellow", nl=False)
        print(f"{one.other}: {one.skipped}")
        return
    same = one.different == 0
    typer.secho("  equal      " if same else "  different  ", fg="green" if same else "red", nl=False)
    counted = many(one.answers, "answer") if same else f"{one.different:,} of {many(one.answers, 'answer')}"
    print(f"{one.other}: {counted}, {span(one.seconds * 1e6)}")
    for difference in one.first:
        answer = difference.stream or difference.other or ()
        keys = columns[: len(columns) - len(answer)]
        print(f"    {_named(keys, difference.key)}")
        for who, values in (("stream", difference.stream), ("other", difference.other)):
            said = "no answer" if values is None else _named(columns[len(keys) :], values)
            print(f"      {who:<7} {said}")
    if one.different > len(one.first):
        print(f"    and {one.different - len(one.first):,} more")


def _named(names: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return ", ".join(
        f"{name} {clock(value) if name.startswith('window_') else value}"
        for name, value in zip(names, values, strict=True)
    )


def _plain(found: Verified) -> dict[str, Any]:
    from dataclasses import asdict

    return {"equal": found.equal, **asdict(found)}
