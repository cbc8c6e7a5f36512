"""A table that is read whole, from a file or a DataFrame: once a run, and again as often as it is asked for.

Each reading that differs from the one before is kept under the checkpoint, and the offset of a batch names the one it
used: so a batch that is run again uses the same, whatever the file has become.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from penstock.api.events import events
from penstock.connectors.files.errors import no_table
from penstock.connectors.files.source import FORMATS, SUFFIXES
from penstock.connectors.formats.limits import DEFAULT, Limits, limits_of
from penstock.connectors.source import Chunk, Offsets, Split
from penstock.errors import DataError, PenstockError, PlanError, did_you_mean
from penstock.plan.tables import REMOVED, Table
from penstock.storage.listing import stat
from penstock.storage.local import LocalStore
from penstock.types.durations import MINUTE, Duration, not_negative, words
from penstock.types.schema import Column, Schema, schema as parsed
from penstock.types.timestamps import show
from penstock.types.validate import decode, reason_of

FOLDER = "penstock/tables"
ONLY = "0"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of Parquet, JSON lines or CSV."""

    path: str
    format: str | None = None
    header: bool = True
    limits: Limits = DEFAULT

    @property
    def place(self) -> tuple[str, str]:
        """Its directory and its name."""
        directory, _, name = self.path.rpartition("/")
        return directory or ("/" if self.path.startswith("/") else "."), name

    def mark(self) -> list[int] | None:
        """What changes when the file does."""
        try:
            return list(stat(*self.place))
        except (DataError, OSError) as error:
            missing = isinstance(error, (DataError, FileNotFoundError, NotADirectoryError))
            raise no_table(self.path, "there is none of that name" if missing else str(error)) from None

    def content(self, columns: Schema) -> bytes:
        """All of it."""
        from penstock.connectors.table_snapshot import of_file

        return of_file(self.place, columns, self.format, self.header, self.limits)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows in hand: an Arrow table, or dicts."""

    rows: Any = field(repr=False)
    name: str = "rows"

    def mark(self) -> list[int] | None:
        """They do not change while a run lasts."""
        return None

    def content(self, columns: Schema) -> bytes:
        """All of them."""
        from penstock.connectors.table_snapshot import of_rows

        return of_rows(self.rows, columns, self.name)

    def __str__(self) -> str:
        return "the rows in hand"


@dataclass(frozen=True, slots=True)
class WholeTable:
    """How a table is read; a position says which reading holds, when it was looked for another, and what failed then.

    `run` tells one start of a pipeline from another. `again` takes what an earlier attempt has kept: a batch that is
    run again has no log of offsets.
    """

    given: TableFile | TableRows
    schema: Schema
    name: str
    reload: int | None = None
    folder: str = ""
    run: str = ""
    again: bool = False
    kind: str = "table"

    def kept_under(self, checkpoint: str | None, run: str, *, again: bool = False) -> WholeTable:
        """The same with a place to keep what was read."""
        if checkpoint is None:
            raise PlanError(
                f"the table {self.name!r} with a checkpoint that is not on a local disk",
                "what was read of it is kept under the checkpoint, where tasks read it as a file",
                "name a checkpoint in a folder that all machines see, or read the table as a stream",
            )
        return replace(self, folder=f"{checkpoint}/{FOLDER}/table-{quote(self.name, safe='')}", run=run, again=again)

    def says(self) -> str:
        """How it is read, in words."""
        again = "" if self.reload is None else f", and again every {words(self.reload)} of processing time"
        return f"read whole from {self.given} when a run starts{again}"

    def start(self) -> Offsets:
        """Before the first reading."""
        return {"version": 0, "content": "", "mark": None, "looked": 0, "read": 0, "run": "", "failed": ""}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """The same reading, or another: at the start of a run, and when it is time to look again."""
        if since["version"] and since["run"] == self.run and not self._due(since, now):
            return since
        looked = {**since, "looked": now, "run": self.run}
        try:
            mark = self.given.mark()
            if mark is not None and mark == since["mark"]:
                return {**looked, "failed": ""}
            data = self._content()
        except Exception as error:
            return self._failed(looked, error)
        return self._taken({**looked, "mark": mark, "failed": ""}, data, now)

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """One piece, where there is another reading."""
        if since["version"] == upto["version"]:
            return []
        return [{"version": upto["version"], "after": _file(upto), "before": _file(since) if since["version"] else ""}]

    def read(self, split: Split) -> Iterator[Chunk]:
        """What the reading withdraws of the one before, and what it has."""
        from penstock.connectors.table_snapshot import changes

        before = self._kept(split["before"]) if split["before"] else None
        yield changes(self.schema, split["version"], self._kept(split["after"]), before)

    def partitions(self, at: Offsets) -> list[str]:
        """One."""
        return [ONLY]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """It is read whole, so that there is never more."""
        return []

    def finished(self, at: Offsets, now: int) -> bool:
        """Once it was read it has no end to wait for."""
        return bool(at["version"])

    def notes(self, at: Offsets) -> list[str]:
        """That it could not be read again, as long as that is so."""
        if not at["failed"]:
            return []
        return [
            f"the table {self.name!r} could not be read again: {at['failed']}; "
            f"it stands as it was read at {show(at['read'])}"
        ]

    def committed(self, at: Offsets) -> None:
        """What was kept of readings long past is let go."""
        if not self.folder:
            return
        store = LocalStore(self.folder)
        for name in store.names(""):
            if int(name.partition("-")[0]) < at["version"] - 1:
                store.delete(name)

    def rows(self) -> list[dict[str, Any]]:
        """All rows as they are now, for a test that plays them."""
        if isinstance(self.given, TableRows) and isinstance(self.given.rows, tuple):
            return [row for row, bad in (decode(row, self.schema) for row in self.given.rows) if bad is None]
        from penstock.connectors.table_snapshot import rows_of

        return rows_of(self.given.content(self.schema), self.schema)

    def _due(self, since: Offsets, now: int) -> bool:
        if self.reload is None:
            return False
        return bool(now - since["looked"] >= (min(self.reload, MINUTE) if since["failed"] else self.reload))

    def _content(self) -> bytes:
        """What there is to read; where a batch is run again, what it read first."""
        store = LocalStore(self.folder)
        kept = [name for name in store.names("") if self.again and name.startswith("00000001-")]
        return self._kept(kept[0]) if kept else self.given.content(self.schema)

    def _taken(self, looked: Offsets, data: bytes, now: int) -> Offsets:
        from penstock.connectors.table_snapshot import name_of_content

        name = name_of_content(data)
        if name == looked["content"]:
            return looked
        made = {**looked, "version": looked["version"] + 1, "content": name, "read": now}
        LocalStore(self.folder).create(_file(made), data)
        return made

    def _failed(self, looked: Offsets, error: Exception) -> Offsets:
        """The first reading must succeed; after that the last one that did stands."""
        why = error.what if isinstance(error, PenstockError) else reason_of(error)
        if not looked["version"]:
            raise DataError(
                f"the table {self.name!r} cannot be read: {why}",
                f"it is read from {self.given} before the first batch, and there is none yet that could stand for it",
                "put the file in its place, whole, and start again",
            ) from None
        failed = {**looked, "failed": why}
        if why != looked["failed"]:
            print(*self.notes(failed), file=sys.stderr, flush=True)
        return failed

    def _kept(self, name: str) -> bytes:
        data = LocalStore(self.folder).read(name)
        if data is None:
            raise DataError(
                f"{self.folder}/{name} is not there",
                f"it is what was read of the table {self.name!r}, and the batch that used it is run again",
                "restore the checkpoint from a copy; it must lie where all machines see it",
            )
        return data


def table(
    given: Any,
    *,
    schema: str | Schema | None = None,
    reload: Duration | None = None,
    name: str | None = None,
    format: str | None = None,
    header: bool = True,
    max_bad: int | str | None = None,
    limits: Limits | None = None,
) -> Table:
    """A table that is no stream, for `join_table` and for rules: a file, a DataFrame, or rows.

    `reload` reads a file again so often; what the new content has no more is gone from the table. `limits` is what a
    line of the file may be.
    """
    made: TableFile | TableRows
    if isinstance(given, (str, os.PathLike)):
        made = file = _file_given(os.fspath(given), format, header, limits_of(limits))
        columns = _file_columns(file, schema)
        called = name or os.path.basename(file.path).partition(".")[0]
    else:
        made, columns = _rows_given(given, schema, name or "table")
        called = name or "table"
        if reload is not None:
            raise PlanError(
                "reload= of a table that is in hand",
                "rows in hand are what they are; only a file can have become another",
                'name the file: ps.table("countries.parquet", reload="10 minutes")',
            )
    _refuse_column(columns)
    every = None if reload is None else not_negative(reload, "reload")
    marked = Schema((*columns.columns, Column(REMOVED, "boolean")))
    (one,) = events(marked, name=called, bounded=True, max_bad=max_bad).inputs
    reader = WholeTable(made, columns, called, every)
    return Table(replace(one, source=replace(one.source, reader=reader)))


def _file_given(path: str, format: str | None, header: bool, limits: Limits) -> TableFile:
    known = format or SUFFIXES.get(os.path.splitext(path.lower())[1])
    if known not in FORMATS:
        raise PlanError(
            f"there is no format {format!r}" if format else f"{path} does not say by its name what format it has",
            f"a table is read as {', '.join(FORMATS)}, by its suffix where no format is given",
            did_you_mean(str(format), FORMATS) if format else 'write format="csv"',
        )
    return TableFile(path, known, header, limits)


def _file_columns(made: TableFile, schema: str | Schema | None) -> Schema:
    if schema is not None:
        return parsed(schema)
    if made.format != "parquet":
        raise PlanError(
            f"the table {made.path} does not say its columns",
            f"{made.format} has no types of its own",
            f'write ps.table({made.path!r}, schema="code string, name string")',
        )
    from penstock.connectors.table_snapshot import file_schema

    try:
        return file_schema(made.place)
    except (PenstockError, OSError) as error:
        raise PlanError(
            f"the table {made.path} cannot be read: {getattr(error, 'what', error)}",
            "its columns are those that the file has, as nothing else says them",
            "put the file in its place, or say its columns: schema=…",
        ) from None


def _rows_given(given: Any, schema: str | Schema | None, name: str) -> tuple[TableRows, Schema]:
    if isinstance(given, Sequence) and all(isinstance(row, Mapping) for row in given):
        if schema is None:
            raise PlanError(
                "a table of rows that does not say its columns",
                "rows of Python have values and no types",
                'write ps.table(rows, schema="code string, name string")',
            )
        return TableRows(tuple(dict(row) for row in given), name), parsed(schema)
    framed = any(hasattr(given, one) for one in ("toArrow", "__arrow_c_stream__", "iloc", "to_batches"))
    if not framed or getattr(given, "isStreaming", False):
        raise PlanError(
            f"ps.table was given {'a streaming DataFrame' if framed else repr(given)}",
            "a table is a file, a DataFrame that is all there, or a list of dicts",
            'write ps.stream(df) for a stream of changes, ps.table("countries.parquet") for a table',
        )
    from penstock.connectors.table_snapshot import in_hand, schema_of

    rows = in_hand(given)
    return TableRows(rows, name), schema_of(rows.schema) if schema is None else parsed(schema)


def _refuse_column(columns: Schema) -> None:
    if REMOVED in columns.names:
        raise PlanError(
            f"the table has a column {REMOVED!r}",
            "a column of that name says which rows a reading has no more",
            "give the column another name",
        )


def _file(at: Offsets) -> str:
    return f"{at['version']:08d}-{at['content']}"
