"""How rows become files: written aside by tasks or the driver, and published by one manifest a batch.

scores/
  data/<tag>-<number>.parquet                       rows; only those that a manifest names are data
  _penstock/epochs/<number>.json                    who may write: the last one; made exclusively, never changed
  _penstock/<lineage>/<batch>.json                  manifest: the files of the batch, rows, fingerprint; the ledger
  _penstock/<lineage>/<batch>.mark                  at most once: the batch was about to be written
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.ownership import Claim, committed
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import fit
from penstock.connectors.sink_errors import fenced
from penstock.credentials import shown
from penstock.errors import PlanError, path_of
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.files.manifest import Epoch
    from penstock.storage.files import Place

FILE_ROWS = 500_000
FORMATS = ("parquet", "json")
_STAGED = re.compile(r"-[0-9a-f]{12}\.(parquet|json)$")


def files(path: str | os.PathLike[str], *, format: str = "parquet", takeover: bool = False) -> Files:
    """Files of Parquet or JSON lines under a directory or URI, each batch published whole."""
    return Files(path_of(path, "ps.files"), format, takeover)


def published(path: str | os.PathLike[str]) -> list[str]:
    """The files of `ps.files` that are data, in order: hand them to Spark, DuckDB or pandas."""
    from penstock.connectors.files.formats import published_files

    return published_files(path_of(path, "ps.files"))


def read_files(path: str | os.PathLike[str], *, current: bool = False) -> pa.Table:
    """All rows that `ps.files` published, in order, or with `current=True` the last answer of each key and window."""
    from penstock.connectors.files.formats import published_rows

    return published_rows(path_of(path, "ps.files"), current=current)


@dataclass(frozen=True, slots=True)
class Files:
    """A directory of files, and their format."""

    path: str
    format: str = "parquet"
    takeover: bool = False
    ledgered = True

    @property
    def place(self) -> str:
        """The directory."""
        return f"files:{shown(self.path) if '://' in self.path else os.path.realpath(self.path)}"

    def describe(self) -> str:
        """Where, and what it promises."""
        fence = "" if "://" not in self.path or self.path.startswith("file:") else "; no fence against a second writer"
        return f"{self.format} files in {shown(self.path)} (exactly once: one manifest a batch{fence})"

    def refuse(self, target: Target) -> None:
        """Raise where the output does not fit: only an unknown format does not."""
        if self.format not in FORMATS:
            raise PlanError(
                f"ps.files was asked for the format {self.format!r}",
                "rows are written as Parquet or as one JSON object a line",
                'write format="parquet" or format="json"',
            )
        fit("append", target, "ps.files")

    def open(self, target: Target) -> FilesWriter:
        """A writer for one output."""
        return FilesWriter(self, target)

    def stage(self, target: Target, tag: str, table: pa.Table) -> dict[str, Any]:
        """Runs in a task: write one data file aside and give its receipt."""
        from penstock.connectors.files.formats import write_file
        from penstock.storage.files import place_of

        stem = re.sub(r"[^\w.=-]+", "-", tag).strip("-") or "rows"
        # The number keeps a second attempt from writing over a file that is published already.
        name = f"data/{stem}-{uuid.uuid4().hex[:12]}.{self.format}"
        place = place_of(self.path)
        write_file(place, name, self.format, table)
        return {"file": name, "rows": table.num_rows, "bytes": place.settle(name)}


class FilesWriter:
    """An open directory: knows its epoch, its last batch, and the files of the batch in hand."""

    def __init__(self, sink: Files, target: Target) -> None:
        from penstock.storage.files import place_of

        self.sink, self.target = sink, target
        self.root: Place = place_of(sink.path)
        self.epoch: Epoch | None = None
        self.last: Ledger | None = None
        self.files: list[dict[str, Any]] = []
        self.leftovers: list[str] = []

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Take the next epoch, then tell what was published last."""
        from penstock.connectors.files.manifest import claim_place, last_ledger, superseded

        claim = Claim(self.sink.place, self.target.sink, lineage, epoch, self.sink.takeover)
        mine = self.epoch
        if mine is not None and (mine.lineage, mine.epoch) == (lineage, epoch) and not superseded(self.root, mine):
            return self.last
        self.leftovers = self._aside(lineage)
        self.epoch = claim_place(self.root, claim, self.target, self.sink.format)
        self.last = committed(last_ledger(self.root, self.epoch))
        return self.last

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        from penstock.connectors.files.manifest import publish

        self._check_epoch(batch)
        publish(self.root, self.target.sink, batch, None)
        self._remember(batch)

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Write parts as data files, aside."""
        self.write_staged(batch, [], parts)

    def write_staged(self, batch: Batch, receipts: list[dict[str, Any]], parts: Iterable[pa.Table]) -> None:
        """Take the files that tasks have staged, and write the parts as files of their own."""
        self.files = list(receipts)
        for table in _joined(parts):
            self.files.append(self.sink.stage(self.target, f"{batch.batch:09d}-driver", table))

    def commit(self, batch: Batch) -> None:
        """Publish one manifest, after a last look whether the epoch is still ours."""
        from penstock.connectors.files.manifest import publish

        self._check_epoch(batch)
        publish(self.root, self.target.sink, batch, self.files)
        self.files = []
        self._remember(batch)
        self._sweep()

    def discard(self, receipts: list[dict[str, Any]]) -> None:
        """Remove staged files that no batch will name."""
        for receipt in receipts:
            self.root.remove(receipt["file"])

    def close(self) -> None:
        """Nothing is held; files without a manifest are removed when a batch is next written."""

    def _check_epoch(self, batch: Batch) -> None:
        from penstock.connectors.files.manifest import superseded

        assert self.epoch is not None
        if superseded(self.root, self.epoch):
            raise fenced(self.sink.place, batch.epoch, "another run has begun")

    def _remember(self, batch: Batch) -> None:
        self.last = Ledger(self.target.sink, batch.lineage, batch.batch, batch.epoch, batch.rows, batch.fingerprint)

    def _aside(self, lineage: str) -> list[str]:
        """What lies about as a run begins: data files, published or not, and manifests that were never linked."""
        asides = [name for name in self.root.names(f"_penstock/{lineage}") if name.endswith(".aside")]
        return [
            *(f"data/{name}" for name in self.root.names("data") if _STAGED.search(name)),
            *(f"_penstock/{lineage}/{name}" for name in asides),
        ]

    def _sweep(self) -> None:
        """Remove what dead attempts have left, once a manifest of ours is there.

        Having published proves that no other run has this batch, and what a newer run stages came after our list.
        """
        from penstock.connectors.files.manifest import manifests

        if self.leftovers:
            named = {one["file"] for manifest in manifests(self.root) for one in manifest.files}
            for name in self.leftovers:
                if name not in named:
                    self.root.remove(name)
            self.leftovers = []


def _joined(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Small parts put together, so that a batch does not become many small files."""
    import pyarrow as pa

    held: list[pa.Table] = []
    for part in parts:
        held += [part] if part.num_rows else []
        if sum(table.num_rows for table in held) >= FILE_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
