"""`penstock quarantine`: which rows could not be used, and how are repaired ones put back through the pipeline?"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.api.loader import load
from penstock.errors import PenstockError
from penstock.humanize import clock, many

if TYPE_CHECKING:
    from penstock.api.pipeline import Pipeline
    from penstock.checkpoint.status import Standing
    from penstock.storage.local import Store

Checkpoint = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint of the run: a folder on this machine.")
]
PIPELINE = "The file of the pipeline, or FILE:NAME"
SHOWN = 60


def add_to(app: typer.Typer) -> None:
    """Both commands."""
    group = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Look at the rows that could not be used, and put repaired ones back.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.command("list", epilog=LIST)(list_rows)
    group.command("replay", epilog=REPLAY)(replay)
    app.add_typer(group, name="quarantine")


LIST = """Examples:

* `penstock quarantine list checkpoints/team-scores`
* `penstock quarantine list checkpoints/team-scores --pipeline team_scores.py --export bad.jsonl`
"""
REPLAY = "Example: `penstock quarantine replay checkpoints/team-scores --from bad.jsonl --pipeline team_scores.py`"


def list_rows(
    checkpoint: Checkpoint,
    pipeline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"{PIPELINE}: where its quarantine goes to a sink, that is read, too."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Write all of them to a file, to be mended and replayed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many are shown.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row, all of them.")] = False,
) -> None:
    """Show the rows that could not be used: where each was read, why it failed, and its text.

    Rows that no sink is given are kept under the checkpoint. An exported row has its columns in `row`, as far as its
    text gives any: mend them there and write penstock quarantine replay.
    """
    from penstock.quarantine.read import quarantined
    from penstock.quarantine.replay import replayed

    store = _store(checkpoint)
    back = replayed(store)
    found = quarantined(store, None if pipeline is None else load(pipeline))
    if export is not None:
        _export([one.exported() for one in found if one.place not in back], export)
    elif as_json:
        for one in found:
            print(json.dumps({**one.exported(), "replayed": one.place in back}, ensure_ascii=False))
    else:
        shown = list(islice(found, limit))
        for one in shown:
            typer.secho(f"{one.source}/{one.partition} offset {one.offset}", fg="cyan", nl=False)
            print(f"  {one.step}: {one.reason}" + ("  (replayed)" if one.place in back else ""))
            print(f"    {_short(one.raw)}")
        rest = sum(1 for _ in found)
        print(f"{many(len(shown) + rest, 'row')}" + (f", {len(shown):,} of them shown" if rest else ""))


def replay(
    checkpoint: Checkpoint,
    given: Annotated[
        Path, typer.Option("--from", metavar="FILE.jsonl", help="The exported rows, with `row` mended in each.")
    ],
    pipeline: Annotated[str, typer.Option(metavar="FILE", help=f"{PIPELINE}.")],
) -> None:
    """Put repaired rows back through the pipeline: its next batch reads them, whether it runs now or later.

    They are read as rows of their source, in a partition of their own called repaired that moves no watermark. A row
    whose window takes no more corrections is late, as the model has it, and goes where late rows go. Each quarantined
    row can be put back once: of those that were before nothing is taken.
    """
    from penstock.quarantine.read import quarantined, readable, repaired
    from penstock.quarantine.replay import put

    store, whole = _store(checkpoint), load(pipeline)
    standing = _refuse_unfit(store, whole)
    known = {one.place for one in quarantined(store, whole)} if readable(whole) else None
    try:
        rows, empty = repaired(given, whole, known)
    except OSError as error:
        raise PenstockError(
            f"the file {given} cannot be read: {error.strerror}",
            "replay takes the rows from a file that was exported and mended",
            f"write penstock quarantine list {checkpoint} --export {given}",
        ) from None
    new = put(store, rows)
    print(f"{many(len(new), 'row')} put back: the next batch of {whole.name} reads {'it' if len(new) == 1 else 'them'}")
    if len(rows) > len(new):
        print(f"{many(len(rows) - len(new), 'row')} left alone: put back before")
    if empty:
        print(f"{many(empty, 'row')} left alone: `row` is null")
    print(
        f"{whole.name} {'runs' if standing.running else 'does not run now'}; its watermark stands at "
        f"{clock(standing.watermark)}: a row whose window takes no more corrections will be late"
    )


def _store(checkpoint: str) -> Store:
    """The files of a checkpoint on this machine; the source reads the inbox without Spark, so nowhere else."""
    from penstock.checkpoint.status import standing
    from penstock.storage.local import LocalStore, local_path

    local = local_path(checkpoint)
    if local is None:
        raise PenstockError(
            f"the checkpoint {checkpoint} is not on a disk of this machine",
            "the rows that are kept and those that are put back are files that are read without Spark",
            "write the quarantine to a sink of your own, and produce repaired rows to the source again",
        )
    standing(checkpoint)  # refuses a folder that is no checkpoint
    return LocalStore(local)


def _refuse_unfit(store: Store, pipeline: Pipeline) -> Standing:
    """Refuse a checkpoint of another pipeline, or one that takes no more rows."""
    from penstock.checkpoint.status import standing

    found = standing(store)
    if found.name != pipeline.name:
        raise PenstockError(
            f"the checkpoint {store.root} belongs to the pipeline {found.name!r}",
            f"the file has {pipeline.name!r}",
            "name the file of the pipeline that wrote the checkpoint",
        )
    if found.finished:
        raise PenstockError(
            f"the checkpoint {store.root} is finished",
            "every window was closed, and it takes no more rows",
            "run the pipeline over the mended input with a new checkpoint",
        )
    return found


def _export(rows: list[dict[str, Any]], file: Path) -> None:
    with open(file, "w", encoding="utf-8") as written:
        written.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    empty = sum(row["row"] is None for row in rows)
    said = f"; {many(empty, 'row')} could not be read as columns and has null there" if empty else ""
    print(
        f"{many(len(rows), 'row')} in {file}: mend `row` in each, then penstock quarantine replay{said}",
        file=sys.stderr,
    )


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= SHOWN * 2 else f"{plain[: SHOWN * 2]}…"
