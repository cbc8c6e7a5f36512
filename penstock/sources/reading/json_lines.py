"""Rows of a file of JSON lines: whole blocks through Arrow's reader, and line by line only where that fails."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.arrow import arrow_type, to_arrow
from penstock.decode import decode, decode_value, shortened
from penstock.schema import Schema
from penstock.sources.reading.chunks import Piece, raw, without
from penstock.sources.reading.conform import Bad, conformed, doubtful, from_text
from penstock.sources.source import Undecoded
from penstock.text_cast import decimal_parts

BLOCK = 16 << 20
LONGEST = 16 << 20  # bytes of a line
FEW = 16  # lines that are read one by one rather than halved again
_OPEN, _CLOSE, _NEWLINE, _RETURN = b"{}\n\r"


def json_pieces(stream: Any, schema: Schema, where: str, first: int) -> Iterator[Piece]:
    """The rows of a file; the offset of a row is `first` and the byte at which its line begins."""
    for start, block in _blocks(stream):
        ends = np.append(np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE), len(block))
        starts = np.concatenate([[0], ends[:-1] + 1])
        long = ends > starts
        yield from apart(Lines(block, starts[long], ends[long], first + start, where), schema)


class Lines:
    """Lines of a block, by where they start and end."""

    __slots__ = ("block", "ends", "offset", "starts", "where")

    def __init__(self, block: bytes, starts: np.ndarray, ends: np.ndarray, offset: int, where: str) -> None:
        self.block, self.offset, self.where = block, offset, where
        self.starts, self.ends = starts, ends

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, low: int, high: int) -> Lines:
        return Lines(self.block, self.starts[low:high], self.ends[low:high], self.offset, self.where)

    @property
    def bytes(self) -> memoryview:
        return memoryview(self.block)[int(self.starts[0]) : int(self.ends[-1])]

    def plain(self) -> np.ndarray:
        """Which lines look like one object: Arrow's reader may see no other (a bare null crashes it)."""
        letters = np.frombuffer(self.block, np.uint8)
        last = letters[self.ends - 1]
        returned = (last == _RETURN) & (self.ends - 1 > self.starts)
        if returned.any():
            last = letters[self.ends - 1 - returned]
        short = self.ends - self.starts <= LONGEST
        plain: np.ndarray = (letters[self.starts] == _OPEN) & (last == _CLOSE) & short
        return plain


def _blocks(stream: Any) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about so many bytes at a time, each time with the place in the file; a long line is cut short."""
    at, rest = 0, b""
    while True:
        read = stream.read(BLOCK)
        data = rest + read
        cut = data.rfind(b"\n") + 1 if read else len(data)
        if cut:
            yield at, data[:cut]
            at, data = at + cut, data[cut:]
        if not read:
            return
        if len(data) > LONGEST:
            skipped = len(data)
            tail = b""
            while read and b"\n" not in tail:
                read = tail = stream.read(BLOCK)
                skipped += len(tail)
            end = tail.find(b"\n") + 1
            yield at, data[: LONGEST + 1]
            at += skipped - (len(tail) - end if end else 0)
            data = tail[end:] if end else b""
        rest = data


def apart(lines: Lines, schema: Schema) -> Iterator[Piece]:
    """Runs of lines that look like rows through Arrow, and those between them one by one."""
    plain = lines.plain()
    edges = [0, *(np.flatnonzero(plain[1:] != plain[:-1]) + 1).tolist(), len(lines)]
    if len(edges) * FEW > len(lines):
        yield from _halved(lines, schema)
        return
    for low, high in pairwise(edges):
        part = lines.part(low, high)
        if plain[low]:
            yield from _halved(part, schema)
        else:
            yield _one_by_one(part, schema)


def _halved(lines: Lines, schema: Schema) -> Iterator[Piece]:
    if not len(lines):
        return
    try:
        yield _whole(lines, schema)
        return
    except (pa.ArrowException, UnicodeDecodeError):
        pass
    if len(lines) <= FEW:
        yield _one_by_one(lines, schema)
        return
    middle = len(lines) // 2
    yield from _halved(lines.part(0, middle), schema)
    yield from _halved(lines.part(middle, len(lines)), schema)


def _whole(lines: Lines, schema: Schema) -> Piece:
    """All lines through Arrow's reader; an exception where one of them is not plainly a row."""
    data = lines.bytes
    if not lines.plain().all():
        raise doubtful("a line is not an object")
    text = bytes(data)
    if not text.isascii():
        text.decode()
    if b"\0" in text:
        raise doubtful("a byte is zero")
    asked = pa.schema([(c.name, _asked(c.type, c.name, lines)) for c in schema.columns])
    table = pj.read_json(
        io.BytesIO(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pj.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise doubtful("a line is not one object")
    arrays: list[pa.Array] = []
    bad: Bad = {}
    for column in schema.columns:
        array = table.column(column.name).combine_chunks()
        if column.type in ("float", "double") and pc.any(pc.invert(pc.is_finite(array))).as_py():
            raise doubtful("JSON has no word for NaN or an infinity")
        array, wrong = _typed(array, column.type)
        arrays.append(array)
        for row, why in wrong.items():
            bad.setdefault(row, f"{lines.where}: column {column.name!r}: {why}")
    rows = pa.RecordBatch.from_arrays(arrays, names=list(schema.names))
    texts = {row: _text(lines, row)[0] for row in bad}
    return without(rows, lines.offset + lines.starts, bad, texts)


def _asked(kind: str, name: str, lines: Lines) -> pa.DataType:
    """What Arrow's reader is asked for: times and days are texts to it, or numbers where the first line has one."""
    if kind == "timestamp":
        try:
            value = json.loads(bytes(lines.part(0, 1).bytes)).get(name)
        except (ValueError, AttributeError, RecursionError):
            value = None
        return pa.int64() if isinstance(value, int) else pa.string()
    if kind.startswith("decimal"):
        return pa.decimal128(38, decimal_parts(kind)[1])  # its reader does not look at the precision; the cast does
    return pa.string() if kind == "date" else arrow_type(kind)


def _typed(array: pa.Array, kind: str) -> tuple[pa.Array, Bad]:
    if kind == "int":
        ends = pc.min_max(array).as_py()
        if ends["min"] is not None and not -(2**31) <= ends["min"] <= ends["max"] < 2**31:
            raise doubtful("a number does not fit in 32 bits")
    if kind.startswith("decimal"):
        return array.cast(arrow_type(kind)), {}
    if kind not in ("timestamp", "date"):
        return array, {}
    if pa.types.is_integer(array.type):
        return conformed(array, kind)
    return from_text(array, kind, lambda text: decode_value(text, kind))


def _one_by_one(lines: Lines, schema: Schema) -> Piece:
    rows, offsets, undecoded = [], [], []
    for i in range(len(lines)):
        offset = lines.offset + int(lines.starts[i])
        text, why = _text(lines, i)
        if not why and not text.strip():
            continue
        row, why = ({}, why) if why else _row(text, schema)
        if why:
            undecoded.append(Undecoded(offset, raw(text), f"{lines.where}: {shortened(why)}"))
        else:
            rows.append(row)
            offsets.append(offset)
    return Piece(np.array(offsets, dtype=np.int64), to_arrow(rows, schema), tuple(undecoded))


def _text(lines: Lines, i: int) -> tuple[str, str | None]:
    """A line as text, and why it is none."""
    start, end = int(lines.starts[i]), int(lines.ends[i])
    data = lines.block[start : min(end, start + LONGEST + 1)]
    if len(data) > LONGEST:
        return data.decode(errors="backslashreplace"), f"the line is longer than {LONGEST:,} bytes"
    try:
        return data.decode().removesuffix("\r"), None
    except UnicodeDecodeError as error:
        return data.decode(errors="backslashreplace"), f"not UTF-8: {error.reason} at byte {error.start}"


def _row(text: str, schema: Schema) -> tuple[dict[str, Any], str | None]:
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        return {}, f"not JSON: {error}"
    if not isinstance(found, dict):
        return {}, "not a JSON object"
    kinds = {column.name: column.type for column in schema.columns}
    row = {}
    for name, value in found.items():
        kind = kinds.get(name)
        if isinstance(value, Decimal) and kind is not None and not kind.startswith("decimal"):
            value = float(value)
        if isinstance(value, float) and kind in ("float", "double") and abs(value) == float("inf"):
            return {}, f"column {name!r}: the number is beyond a double, or not JSON"
        if isinstance(value, float) and value != value:
            if kind is not None:
                return {}, f"column {name!r}: NaN is not JSON"
            value = None
        row[name] = value
    return decode(row, schema)
