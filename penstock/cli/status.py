"""`penstock status`: how does a run stand, and who runs it, as its checkpoint tells?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.progress import all_bad
from penstock.humanize import clock, many, span, stamp

if TYPE_CHECKING:
    from penstock.checkpoint.lease import Owner
    from penstock.checkpoint.status import Partition, Standing


def add_to(app: typer.Typer) -> None:
    """The command."""
    app.command(epilog="Example: `penstock status checkpoints/team-scores`")(status)


def status(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint: a folder, or a location that Spark reaches.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Say how far a run has come, where each partition stands, and who runs it.

    Reads the checkpoint alone and changes nothing; Spark is started only for one that is not on a local disk.
    """
    found = _standing(checkpoint)
    if as_json:
        more = {"watermark_at": stamp(found.watermark), "now_at": stamp(found.now)}
        print(json.dumps({**found.plain(), **more}, indent=2))
        return
    rows = _rows(found)
    width = max(12, *(len(label) for label, _ in rows)) + 1
    for label, value in rows:
        typer.secho(f"{label:<{width}}", fg="cyan", nl=False)
        print(value)
    if found.lag:
        print()
        for line in lag_table(found):
            print(line)


def _standing(checkpoint: str) -> Standing:
    from penstock.checkpoint.status import standing
    from penstock.storage.local import local_path

    if local_path(checkpoint) is not None:
        return standing(checkpoint)
    from penstock.spark.hadoop_store import store_of
    from penstock.spark.session import session

    return standing(store_of(session(), checkpoint))


def _rows(found: Standing) -> list[tuple[str, str]]:
    totals = found.totals
    behind = "" if found.behind is None else f", {span(found.behind)} behind the last batch"
    rows = [
        ("pipeline", found.name),
        ("checkpoint", f"{found.checkpoint}, {many(found.shards, 'shard')}"),
        ("lineage", found.lineage),
        ("state", "finished: every window is closed" if found.finished else _runner(found)),
        *_waiting(found),
        ("batch", "none yet" if found.batch is None else f"{found.batch:,}, at {clock(found.now)} UTC"),
        ("watermark", f"{clock(found.watermark)}{behind}"),
        ("events", f"{totals.read:,} in, {totals.filtered + totals.dropped:,} filtered out"),
        ("panes", f"{found.panes:,}"),
        *_held(found),
        ("late", many(totals.late, "row")),
        *([("duplicates", many(totals.deduplicated, "row"))] if totals.deduplicated else []),
        ("quarantined", all_bad(totals) or many(totals.quarantined, "row")),
    ]
    rows += [(f"{one.source}/{one.partition}", _partition(one)) for one in found.partitions]
    return rows + [("note", note) for note in found.notes]


def _held(found: Standing) -> list[tuple[str, str]]:
    """What is remembered: open windows, or each stage by its name where there are others."""
    if all(name.endswith(": windows") for name in found.held):
        return [("open windows", f"{found.open_windows:,}")]
    return [("held", ", ".join(f"{held:,} by stage {name}" for name, held in found.held.items()))]


def _waiting(found: Standing) -> list[tuple[str, str]]:
    waits = found.waiting
    return [] if waits is None else [("waiting", f"since {clock(waits.since)} UTC: {waits.what}")]


def lag_table(found: Standing) -> list[str]:
    """The lag of each partition, in the columns of Kafka's own tool for consumer groups."""
    head = ("SOURCE", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    cells = [head]
    for one in found.lag:
        topic, _, partition = one.partition.rpartition("/")
        cells.append((one.source, topic or "-", partition, str(one.current), str(one.end), str(one.lag)))
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _runner(found: Standing) -> str:
    owner: Owner | None = found.owner
    if owner is None:
        return "never started"
    who = f"process {owner.pid} on {owner.host}, start {owner.epoch}"
    if owner.released:
        return f"stopped; last run by {who}"
    if owner.alive is None:
        return f"started by {who}, which cannot be seen from here"
    return f"running: {who}" if owner.alive else f"died: {who} is gone; run it again and it goes on"


def _partition(one: Partition) -> str:
    said = "no event yet" if one.newest is None else f"newest event {clock(one.newest)}"
    if one.idle:
        return f"{said}, idle: silent for {span(one.silent_for)}, nobody waits for it"
    return f"{said}, silent for {span(one.silent_for)}" if one.silent_for else said
