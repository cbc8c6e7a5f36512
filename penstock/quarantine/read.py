"""Which rows could not be used, wherever they are kept, and how repaired ones are taken back.

An exported row is one JSON object a line: `source`, `partition`, `offset`, `step`, `reason`, `raw`, and `row`, the
columns of the source, or null where the text could not be read. People mend `row` and leave the rest as it is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.api.pipeline import Output, Pipeline
from penstock.errors import DataError, PenstockError, did_you_mean
from penstock.quarantine.replay import Place, Repaired, chunks
from penstock.storage.local import Store
from penstock.types.schema import Schema

_FIRST = 5


@dataclass(frozen=True, slots=True)
class Bad:
    """A row in quarantine: where it was read, at which step it failed and why, and its text."""

    source: str
    partition: str
    offset: int
    step: str
    reason: str
    raw: str

    @property
    def place(self) -> Place:
        """What tells it from every other."""
        return self.source, self.partition, self.offset

    def exported(self) -> dict[str, Any]:
        """All of it as JSON has it, with the columns that its text gives."""
        return {**asdict(self), "row": _columns(self.raw)}


def quarantined(store: Store, pipeline: Pipeline | None) -> Iterator[Bad]:
    """The rows kept under a checkpoint, and those that the pipeline writes to sinks that can be read."""
    from penstock.checkpoint.unwritten_rows import kept_rows

    for table in kept_rows(store, "quarantine"):
        yield from (Bad(**row) for row in table.to_pylist())
    for output in () if pipeline is None else pipeline.outputs:
        if output.kind == "quarantine":
            yield from _written(output)


def readable(pipeline: Pipeline) -> bool:
    """Whether every quarantined row of the pipeline can be found again: none goes to a sink that is not read here."""
    from penstock.quarantine.read_back import keeps_all

    return all(keeps_all(output.sink) for output in pipeline.outputs if output.kind == "quarantine")


def repaired(file: Path, pipeline: Pipeline, known: Collection[Place] | None) -> tuple[list[Repaired], int]:
    """The rows of an exported file that have columns, and how many have none; the first wrong line is refused."""
    schemas = {one.source.name: one.source.schema for one in pipeline.flow.inputs}
    rows, numbers, empty = [], [], 0
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        one = _parsed(f"{file}, line {number}", line, schemas, known)
        if one is None:
            empty += 1
        else:
            rows.append(one)
            numbers.append(number)
    for name, schema in schemas.items():
        _refuse_undecodable(
            file, name, schema, [(n, one) for n, one in zip(numbers, rows, strict=True) if one.place[0] == name]
        )
    return rows, empty


def _parsed(where: str, line: str, schemas: dict[str, Schema], known: Collection[Place] | None) -> Repaired | None:
    try:
        held = json.loads(line)
        place = (held["source"], held["partition"], held["offset"])
        row = held["row"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{where} is not a quarantined row",
            f"{type(error).__name__}: {error}; a line has source, partition, offset and row, as they were exported",
            "mend `row` only; penstock quarantine list --export writes the file anew",
        ) from None
    if place[0] not in schemas:
        raise DataError(
            f"{where} is of the source {place[0]!r}, which the pipeline does not have",
            f"its sources are: {', '.join(schemas)}",
            did_you_mean(str(place[0]), schemas),
        )
    if known is not None and place not in known:
        raise DataError(
            f"{where}: {place[0]}/{place[1]} has no quarantined row with the offset {place[2]!r}",
            "a row that was used would be counted a second time",
            "leave source, partition and offset as they were exported",
        )
    if row is not None and not isinstance(row, dict):
        raise DataError(
            f"{where}: `row` is {row!r}",
            "it holds the columns of the source by their names",
            f"write an object, such as {json.dumps(dict.fromkeys(schemas[place[0]].names))}",
        )
    return None if row is None else Repaired(place, row)


def _refuse_undecodable(file: Path, source: str, schema: Schema, rows: list[tuple[int, Repaired]]) -> None:
    """Refuse rows that would only be quarantined again; the source decodes them in the same way."""
    wrong = []
    for number, one in rows:
        unknown = [name for name in one.row if name not in schema.names]
        if unknown:
            wrong.append(f"line {number}: there is no column {unknown[0]!r}")
            continue
        try:
            found = [bad.reason for chunk in chunks([one.row], schema, 0) for bad in chunk.undecoded]
        except ValueError as error:
            found = [f"a binary column is written as hex digits: {error}"]
        wrong += [f"line {number}: {reason}" for reason in found]
    if wrong:
        more = f", and {len(wrong) - _FIRST} more" if len(wrong) > _FIRST else ""
        raise DataError(
            f"{len(wrong)} of the rows in {file} are still not rows of {source}",
            "; ".join(wrong[:_FIRST]) + more,
            "mend them, or remove these lines",
        )


def _columns(raw: str) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _written(output: Output) -> Iterator[Bad]:
    from penstock.quarantine.read_back import reader_of

    read = reader_of(output.sink)
    if read is None:
        raise PenstockError(
            f"the quarantine is written to {output.sink.describe()}",
            "that is not read by this command: it reads SQLite, DuckDB, files, PostgreSQL, topics of JSON, and what is "
            "kept under the checkpoint",
            "read it there; a line of the file for replay has source, partition, offset and row",
        )
    yield from (Bad(*row) for row in read(output.sink))
