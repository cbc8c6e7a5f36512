"""A directory of Parquet, JSON or CSV files read as a log: files appear, stay as they are, and are read once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.api.stream import Stream
from penstock.connectors.files.errors import not_adjacent, unknown_format
from penstock.connectors.files.seen_files import Seen, decoded
from penstock.connectors.formats.limits import DEFAULT, Limits, limits_of
from penstock.connectors.source import TASKS, Chunk, Offsets, Split, source
from penstock.errors import PlanError, did_you_mean, path_of
from penstock.humanize import many
from penstock.storage.listing import File, listed, opened
from penstock.types.schema import Schema, schema as parsed

if TYPE_CHECKING:
    from penstock.connectors.formats.chunks import Piece

FILE = 2**36  # offsets of one file: 64 G rows or bytes of text
FORMATS = ("parquet", "json", "csv")
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
}
PACKED = (".gz", ".bz2", ".zst", ".lz4")
MOST_FILES = 1_000
LISTED = 32  # files of a batch that are not worth a position of their own to forget
NAMED = 3  # files that a note names
SMALL = 1 << 20  # bytes for which a second task does not pay
ROW_BYTES = {"json": 120, "csv": 60}  # a guess at a row's size, to keep about to a limit of rows
ONLY = "0"


@dataclass(frozen=True, slots=True)
class Directory:
    """How a directory is read.

    A position holds what has been read, in a few kilobytes, and the files of its own batch.
    """

    path: str
    schema: Schema
    format: str | None = None
    by_directory: bool = False
    header: bool = True
    end: bool = False
    tasks: int | None = None
    limits: Limits = DEFAULT
    kind = "directory"  # stands in checkpoints

    def start(self) -> Offsets:
        """Before the first file."""
        return {**Seen().encoded(), "first": 0, "count": 0, "files": [], "partitions": [], "until": None, "left": None}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """The files that are there and have not been read, in order, until they are rows enough."""
        files, seen = listed(self.path), decoded(since)
        until = self._until(since)
        if self.end and until is None:
            until = max((file.came for file in files), default=0)
        found = seen.unread(files, self.path)
        unread = [file for file in found if until is None or file.written <= until]
        # Those that are older than what was read are all taken: what is left of them could not be told again.
        late = sum(seen.newest is not None and file.key <= seen.newest for file in unread)
        batch = [*unread[:late], *self._enough(unread[late:], limit)]
        after = seen.after(files, found, batch)
        looked = since["left"] is not None and after.older == seen.older
        if not batch and looked and until == since["until"] and len(since["files"]) <= LISTED:
            return since
        count = since["count"]
        return {
            **after.encoded(),
            "first": count,
            "count": count + len(batch),
            "files": [[file.name, file.size, file.written] for file in batch],
            "partitions": sorted({*since["partitions"], *(self._partition(file.name) for file in unread)}),
            "until": until,
            "left": len(unread) - len(batch),
        }

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """Runs of files of about the same size in all; a large Parquet file may be cut by its row groups."""
        if since == upto:
            return []
        if since["count"] != upto["first"]:
            raise not_adjacent(since["count"], upto["first"])
        works = [[*file, upto["first"] + i] for i, file in enumerate(upto["files"])]
        works.sort(key=lambda work: self._partition(work[0]))
        total = sum(work[1] for work in works)
        pieces = max(1, min(self.tasks or TASKS, total // SMALL))
        shared: list[list[list[Any]]] = [[] for _ in range(pieces)]
        for at, work in self._cut(works, total // pieces + 1):
            shared[min(pieces - 1, at * pieces // max(total, 1))].append(work)
        return [{"files": some} for some in shared if some]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of some files, in chunks of up to a million."""
        from penstock.connectors.formats.chunks import chunks

        pieces = ((self._partition(file[0]), piece) for file in split["files"] for piece in self._pieces(*file))
        return chunks(pieces, self.schema)

    def partitions(self, at: Offsets) -> list[str]:
        """One for all, or the directories of the files seen so far."""
        return list(at["partitions"]) if self.by_directory else [ONLY]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """The partitions of the files that are there and have not been read."""
        unread = decoded(at).unread(listed(self.path), self.path)
        until = self._until(at)
        return sorted({self._partition(file.name) for file in unread if until is None or file.written <= until})

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether all files that were there at the start have been read."""
        return self.end and at["left"] == 0

    def beyond(self, at: Offsets) -> list[str]:
        """The files that came after the end, in words."""
        names = [file.name for file in decoded(at).unread(listed(self.path), self.path)]
        if not names:
            return []
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        shown = ", ".join(names[:NAMED])
        return [f"{many(len(names), 'file')} came to {self.path} after its end, unread: {shown}{more}"]

    def format_of(self, name: str) -> str:
        """The format of a file, as declared or by its suffix."""
        if self.format is not None:
            return self.format
        plain, suffix = os.path.splitext(name.lower())
        if suffix in PACKED:
            suffix = os.path.splitext(plain)[1]
        if suffix not in SUFFIXES:
            raise unknown_format(f"{self.path}/{name}")
        return SUFFIXES[suffix]

    def _until(self, at: Offsets) -> int | None:
        """The end that a position has; it holds as long as there is to be one."""
        until: int | None = at["until"]
        return until if self.end else None

    def _enough(self, unread: Sequence[File], limit: int | None) -> list[File]:
        """The first files until they hold about so many rows, and at least one."""
        taken: list[File] = []
        rows = 0
        for file in unread[:MOST_FILES]:
            kind = self.format_of(file.name)
            _refuse_binary(self.schema, kind)
            if limit is not None:
                rows += self._rows(file, kind)
                if taken and rows > limit:
                    break
            taken.append(file)
        return taken

    def _rows(self, file: File, kind: str) -> int:
        if kind != "parquet":
            return file.size * (5 if file.name.lower().endswith(PACKED) else 1) // ROW_BYTES[kind] + 1
        from penstock.connectors.formats.parquet import row_count

        with opened(self.path, file.name, file.size, file.written, seekable=True) as stream:
            return row_count(stream, f"{self.path}/{file.name}")

    def _cut(self, works: list[list[Any]], share: int) -> Iterator[tuple[int, list[Any]]]:
        """Each file with the place of its middle, the files laid end to end; those beyond a share in parts."""
        at = 0
        for name, size, written, ordinal in works:
            parts = -(-size // share) if size > SMALL and self.format_of(name) == "parquet" else 1
            parts = 1 if size < share * 1.25 else parts
            for k in range(parts):
                yield at + size * (2 * k + 1) // (2 * parts), [name, size, written, ordinal, k, parts]
            at += size

    def _pieces(self, name: str, size: int, written: int, ordinal: int, k: int, n: int) -> Iterator[Piece]:
        from penstock.connectors.formats.csv import csv_pieces
        from penstock.connectors.formats.json_lines import json_pieces
        from penstock.connectors.formats.parquet import parquet_pieces

        kind, first = self.format_of(name), ordinal * FILE
        with opened(self.path, name, size, written, seekable=kind == "parquet") as stream:
            if kind == "parquet":
                yield from parquet_pieces(stream, self.schema, name, (k, n), first)
            elif kind == "json":
                yield from json_pieces(stream, self.schema, name, first, self.limits)
            else:
                yield from csv_pieces(stream, self.schema, name, self.header, first)

    def _partition(self, name: str) -> str:
        return os.path.dirname(name) or "." if self.by_directory else ONLY


def directory(
    path: str | os.PathLike[str],
    *,
    schema: str | Schema,
    format: str | None = None,
    name: str | None = None,
    partition: str | None = None,
    max_bad: int | str | None = None,
    header: bool = True,
    end: bool = False,
    limits: Limits | None = None,
) -> Stream:
    """The rows of the files in a directory, and of those that will appear in it.

    `partition="directory"` makes a partition of each directory below; `end=True` reads what is there at the start and
    no more; `header` says whether the first line of a CSV file names its columns; `limits` is what a line may be.
    """
    where = path_of(path, "ps.directory").rstrip("/") or "/"
    columns = parsed(schema)
    if format is not None and format not in FORMATS:
        raise PlanError(
            f"there is no format {format!r}",
            f"files are read as {', '.join(FORMATS)}, or by their suffix where no format is given",
            did_you_mean(str(format), FORMATS),
        )
    if partition not in (None, "directory"):
        raise PlanError(
            f"partition is {partition!r}",
            "a directory is one partition, or each directory below it is one",
            'write partition="directory", or leave it out',
        )
    _refuse_binary(columns, format)
    reader = Directory(where, columns, format, partition is not None, header, end, limits=limits_of(limits))
    called = name or os.path.basename(where) or "directory"
    return source(reader, columns, name=called, bounded=end, max_bad=max_bad)


def _refuse_binary(columns: Schema, format: str | None) -> None:
    for column in columns.columns:
        if column.type == "binary" and format in ("json", "csv"):
            raise PlanError(
                f"the column {column.name!r} is binary, and {format} has no bytes",
                "a file of text can hold bytes only in some code, which nobody has named",
                f'declare it as "{column.name} string", or write the files as Parquet',
            )
