"""Rows of a file of JSON lines: whole blocks through Arrow's reader, and line by line only where that fails."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.connectors.formats.chunks import Piece, raw, without
from penstock.connectors.formats.coerce import (
    DIGITS,
    WIDEST,
    Bad,
    conformed,
    doubtful,
    from_text,
    row_of,
    value_of,
)
from penstock.connectors.formats.json_limits import beyond
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.connectors.source import Undecoded
from penstock.types.arrow import arrow_type, to_arrow
from penstock.types.schema import FLOATS, INTEGERS, Schema
from penstock.types.text import decimal_parts, read_number
from penstock.types.validate import decode_value, shortened

BLOCK = 16 << 20
FEW = 16  # lines that are read one by one rather than halved again
LONG = 20  # letters of a number, beyond which it is no integer of 64 bits
_OPEN, _CLOSE, _NEWLINE, _RETURN = b"{}\n\r"
_SPACE = r"[ \t\r]*"
# What Arrow's reader gets wrong, or dies of, in a decimal column: an exponent, or more digits than its type can count.
_WILD = (
    f':{_SPACE}(?:"?[+-]?[0-9.]*[0-9.][eE][+-]?[0-9]+"?{_SPACE}[,}}]|"?[+-]?[0-9.]{{DIGITS}}|'
    r'"(?:[0-9.eE+-]|\\u[0-9A-Fa-f]{4})*\\u[0-9A-Fa-f]{4})'
)
NARROW = 18  # digits after the point with which numbers of as many digits, and one more, fit in 128 bits


def json_pieces(stream: Any, schema: Schema, where: str, first: int, limits: Limits = DEFAULT) -> Iterator[Piece]:
    """The rows of a file; the offset of a row is `first` and the byte at which its line begins."""
    for start, block in _blocks(stream, limits.size):
        ends = np.append(np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE), len(block))
        starts = np.concatenate([[0], ends[:-1] + 1])
        long = ends > starts
        yield from apart(Lines(block, starts[long], ends[long], first + start, where, limits), schema)


class Lines:
    """Lines of a block, by where they start and end, and which of them no decoder may see."""

    __slots__ = ("beyond", "block", "ends", "limits", "offset", "starts", "where")

    def __init__(
        self,
        block: bytes,
        starts: np.ndarray,
        ends: np.ndarray,
        offset: int,
        where: str,
        limits: Limits = DEFAULT,
        bad: Mapping[int, str] | None = None,
    ) -> None:
        self.block, self.offset, self.where, self.limits = block, offset, where, limits
        self.starts, self.ends = starts, ends
        self.beyond = beyond(block, starts, ends, limits) if bad is None else bad

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, low: int, high: int) -> Lines:
        starts, ends = self.starts[low:high], self.ends[low:high]
        return Lines(self.block, starts, ends, self.offset, self.where, self.limits, self.beyond)

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
        plain: np.ndarray = (letters[self.starts] == _OPEN) & (last == _CLOSE)
        return plain & ~np.isin(self.starts, list(self.beyond)) if self.beyond else plain


def _blocks(stream: Any, longest: int) -> Iterator[tuple[int, bytes]]:
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
        if len(data) > longest:
            skipped = len(data)
            tail = b""
            while read and b"\n" not in tail:
                read = tail = stream.read(BLOCK)
                skipped += len(tail)
            end = tail.find(b"\n") + 1
            yield at, data[: longest + 1]
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
    if _has_odd_words(text):
        raise doubtful("Arrow has more words for NaN and infinities than JSON readers have")
    narrow = _are_narrow(text, schema)
    asked = pa.schema([(c.name, _asked(c.type, c.name, lines, narrow)) for c in schema.columns])
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


def _asked(kind: str, name: str, lines: Lines, narrow: bool) -> pa.DataType:
    """What Arrow's reader is asked for: times and days are texts to it, or numbers where the first line has one."""
    if kind == "timestamp":
        try:
            value = _PARSER.decode(bytes(lines.part(0, 1).bytes).decode()).get(name)
        except (ValueError, AttributeError, RecursionError):
            value = None
        return pa.int64() if isinstance(value, Number) else pa.string()
    if kind.startswith("decimal"):
        # Its reader does not look at the precision; the cast does.
        return pa.decimal128(38, decimal_parts(kind)[1]) if narrow else WIDEST
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
    return from_text(array, kind, partial(value_of, kind))


def _are_narrow(text: bytes, schema: Schema) -> bool:
    """Whether Arrow can count the digits of decimals in 128 bits; an exception where it cannot in 256 either."""
    scales = [decimal_parts(column.type)[1] for column in schema.columns if column.type.startswith("decimal")]
    if not scales:
        return True
    edges = pa.py_buffer(np.array([0, len(text)], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, edges, pa.py_buffer(text)])
    for narrow in (True, False) if max(scales) <= NARROW else (False,):
        pattern = _WILD.replace("DIGITS", str(NARROW + 2 if narrow else DIGITS))
        if not pc.match_substring_regex(whole, pattern)[0].as_py():
            return narrow
    raise doubtful("a number has an exponent or many digits, and Arrow would not look")


def _has_odd_words(text: bytes) -> bool:
    """Whether it has Inf, -Inf or -NaN where a value may be: their first letters are looked for, which are rare."""
    data = np.frombuffer(text, np.uint8)
    for word, before, after in ((b"Inf", b":,[- \t\r", b",]} \t\r"), (b"NaN", b"-", b",]} \t\r")):
        at = np.flatnonzero(data == word[0])
        at = at[(at > 0) & (at + len(word) < len(data))]
        for i, sign in enumerate(word[1:], 1):
            at = at[data[at + i] == sign]
        at = at[np.isin(data[at - 1], list(before)) & np.isin(data[at + len(word)], list(after))]
        if len(at):
            return True
    return False


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
    data = lines.block[start : min(end, start + lines.limits.size + 1)]
    if why := lines.beyond.get(start):
        return data.decode(errors="backslashreplace"), why
    try:
        return data.decode().removesuffix("\r"), None
    except UnicodeDecodeError as error:
        return data.decode(errors="backslashreplace"), f"not UTF-8: {error.reason} at byte {error.start}"


class Number:
    """A number of JSON as it was written: of any length and with any exponent, until a column asks for its value."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return shortened(self.text)


_PARSER = json.JSONDecoder(parse_int=Number, parse_float=Number)


def _row(text: str, schema: Schema) -> tuple[dict[str, Any], str]:
    """The row of one line, or why it is none; only what a column asks for becomes a value."""
    try:
        found = _PARSER.decode(text)
    except Exception as error:  # whatever foreign bytes make a decoder stumble over
        return {}, f"not JSON: {error}"
    return row_of(found, schema, _value) if isinstance(found, dict) else ({}, "not a JSON object")


def _value(kind: str, value: Any) -> Any:
    if isinstance(value, Number):
        return _of_number(value, kind)
    if isinstance(value, float) and value != value:
        raise ValueError("NaN is not JSON")
    if isinstance(value, float) and kind in FLOATS:
        raise ValueError("the number is beyond a double, or not JSON")
    return value_of(kind, value)


def _of_number(number: Number, kind: str) -> Any:
    text = number.text
    if kind in FLOATS:
        found = float(text)
        if abs(found) == float("inf"):
            raise ValueError("the number is beyond a double, or not JSON")
        return found
    if kind.startswith("decimal"):
        return decode_value(read_number(text), kind)
    if kind in (*INTEGERS, "timestamp") and text.removeprefix("-").isdigit():
        if len(text) > LONG:
            raise ValueError(f"{number!r} does not fit into 64 bits")
        return decode_value(int(text), kind)
    return decode_value(number, kind)
