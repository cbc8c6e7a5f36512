"""Rows of a CSV file: every column as text through Arrow's reader, then as its type; bad records by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from penstock.connectors.files.errors import not_of_its_format
from penstock.connectors.formats.chunks import Piece, raw, without
from penstock.connectors.formats.coerce import Bad, csv_value, doubtful, from_text
from penstock.connectors.source import Undecoded
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema

BLOCK = 16 << 20
# A field: in quotes, where two of them stand for one, and then as it is, up to a comma, the end of a line or of all.
_FIELD = re.compile(r'("[^"]*+(?:""[^"]*+)*+(?:"|\Z))?([^,\r\n]*+)(,|\r\n?|\n|\Z)')
_BYTES = re.compile(_FIELD.pattern.encode())
_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some programs write before everything else


def csv_pieces(stream: Any, schema: Schema, where: str, header: bool, first: int) -> Iterator[Piece]:
    """The records of a file; the offset of one is `first` and how many came before it."""
    data = stream.read()
    names, at = header_of(data, schema, where) if header else (list(schema.names), _begin(data))
    try:
        yield from _fast(data, at, names, schema, where, first)
    except (pa.ArrowException, UnicodeDecodeError):
        yield _slow(data[at:], names, schema, where, first)


def header_of(data: bytes, schema: Schema, where: str) -> tuple[list[str], int]:
    """The columns that the first record of a file names, and where that ends."""
    names: list[str] = []
    at = _begin(data)
    for found in _BYTES.finditer(data, at):
        if not names and not found[0].strip(b"\r\n"):  # a line of nothing
            continue
        try:
            quoted, plain = None if found[1] is None else found[1].decode(), found[2].decode()
        except UnicodeDecodeError as error:
            raise not_of_its_format(where, "CSV", error) from None
        if quoted and not _closed(quoted):
            raise not_of_its_format(where, "CSV", "its header has a quote that is never closed")
        names.append(_value(quoted, plain) or "")
        if found[3] != b",":
            at = found.end()
            break
    twice = [name for name in schema.names if names.count(name) > 1]
    if twice:
        raise not_of_its_format(where, "CSV", f"its header has the column {twice[0]!r} twice")
    return names, at


def _begin(data: bytes) -> int:
    return len(_MARK) if data.startswith(_MARK) else 0


def _fast(data: bytes, at: int, names: list[str], schema: Schema, where: str, first: int) -> Iterator[Piece]:
    if b"\0" in data:
        raise doubtful("a byte is zero")
    # Arrow cannot hand a record that is no text to its handler: that would fail unheard, with lines on stderr.
    ends = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    if data.startswith(_MARK, at):
        raise doubtful("a mark that is not at the beginning is text, but not to Arrow")
    if data.endswith(b","):
        raise doubtful("the last field is nothing, and Arrow would take it for quoted where the one before it is")
    invalid: list[tuple[int, str, str]] = []

    def note(row: pcsv.InvalidRow) -> str:
        why = f"{row.actual_columns} columns instead of {row.expected_columns}"
        invalid.append((row.number, row.text, why))
        return "skip"

    unique = [f"{n}" for n in range(len(names))]
    table = pcsv.read_csv(
        pa.BufferReader(pa.py_buffer(data).slice(at)),
        read_options=pcsv.ReadOptions(use_threads=False, block_size=_size(data, at), column_names=unique),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pcsv.ConvertOptions(
            column_types={name: pa.string() for name in unique},
            include_columns=[unique[names.index(name)] for name in schema.names if name in names],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    table = table.combine_chunks()
    skipped = np.array([number - 1 for number, _, _ in invalid], dtype=np.int64)
    total = table.num_rows + len(invalid)
    numbers = np.setdiff1d(np.arange(total, dtype=np.int64), skipped, assume_unique=True)
    if len(numbers) != table.num_rows:
        raise doubtful("the records do not add up")
    texts = {name: _joined(table.column(unique[names.index(name)])) for name in schema.names if name in names}
    good = _typed(texts, table.num_rows, schema, first + numbers, where)
    bad = [Undecoded(first + number - 1, raw(text), f"{where}: {why}") for number, text, why in invalid]
    merged = sorted([*good.undecoded, *bad], key=lambda one: one.offset)
    yield Piece(good.offsets, good.rows, tuple(merged))


def _size(data: bytes, at: int) -> int:
    """How large blocks are, of which none ends between \\r and \\n: there Arrow loses the \\n of a value, too."""
    for size in range(BLOCK, BLOCK // 2, -1):
        if not any(data[end - 1 : end + 1] == b"\r\n" for end in range(at + size, len(data), size)):
            return size
    raise doubtful("blocks of every size would end between \\r and \\n")


def _slow(data: bytes, names: list[str], schema: Schema, where: str, first: int) -> Piece:
    """Record by record: for files that hold what Arrow's reader refuses."""
    undecoded: list[Undecoded] = []
    records: list[list[str | None]] = []
    numbers: list[int] = []
    asked = [names.index(name) for name in schema.names if name in names]
    for number, record in enumerate(_records(data.decode(errors="surrogateescape"))):
        whole = ",".join(field or "" for field in record)
        shown = whole.encode(errors="surrogateescape").decode(errors="backslashreplace")
        why = "" if len(record) == len(names) else f"{len(record)} columns instead of {len(names)}"
        why = why or ("" if whole.isascii() or all(_utf8(record[n] or "") for n in asked) else "not UTF-8")
        if why:
            undecoded.append(Undecoded(first + number, raw(shown), f"{where}: {why}"))
        else:
            records.append(record)
            numbers.append(number)
    texts = {
        name: pa.array([record[names.index(name)] for record in records], pa.string())
        for name in schema.names
        if name in names
    }
    good = _typed(texts, len(records), schema, first + np.array(numbers, dtype=np.int64), where)
    merged = sorted([*good.undecoded, *undecoded], key=lambda one: one.offset)
    return Piece(good.offsets, good.rows, tuple(merged))


def _records(text: str) -> Iterator[list[str | None]]:
    """The records of a file as Arrow's reader takes them apart; a field of nothing is null, one of quotes is not."""
    record: list[str | None] = []
    for found in _FIELD.finditer(text):
        quoted, plain, end = found.groups()
        if not record and quoted is None and not plain and end != ",":
            continue  # a line of nothing, or the end of all
        record.append(_value(quoted, plain))
        if end != ",":
            yield record
            record = []


def _value(quoted: str | None, plain: str) -> str | None:
    """What a field stands for; one of nothing is null."""
    if quoted is None:
        return plain or None
    return quoted[1:].removesuffix('"' if _closed(quoted) else "").replace('""', '"') + plain


def _closed(quoted: str) -> bool:
    """Whether the last quote ends the field, rather than the file."""
    return quoted.count('"') % 2 == 0


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _typed(texts: dict[str, pa.Array], rows: int, schema: Schema, offsets: np.ndarray, where: str) -> Piece:
    """Columns of texts as their types; a missing column is null, an empty field of no text too."""
    arrays: list[pa.Array] = []
    bad: Bad = {}
    for column in schema.columns:
        array = texts.get(column.name)
        if array is None:
            arrays.append(pa.nulls(rows, arrow_type(column.type)))
            continue
        if column.type != "string":
            array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
        array, wrong = from_text(array, column.type, csv_value(column.type))
        arrays.append(array)
        for row, why in wrong.items():
            bad.setdefault(row, f"{where}: column {column.name!r}: {why}")
    made = pa.RecordBatch.from_arrays(arrays, names=list(schema.names))
    shown = {row: ",".join(array[row].as_py() or "" for array in texts.values()) for row in bad}
    return without(made, offsets, bad, shown)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    made = column.combine_chunks()
    return made if not isinstance(made, pa.ChunkedArray) else pa.concat_arrays(made.chunks)
