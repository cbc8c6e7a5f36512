"""How Arrow columns become PostgreSQL's: the type of each, its bytes in a binary COPY, and the statements that write.

| column | in PostgreSQL |
|---|---|
| long, int | bigint (`op` smallint) |
| boolean | boolean |
| double, float | double precision, NaN and the infinities among them |
| string | text; U+0000, which PostgreSQL cannot hold, stops an answer; in late rows and quarantine it shows as ␀ |
| decimal(p, s) | numeric(p,s) |
| date | date |
| timestamp | timestamp with time zone |
| binary | bytea |
| list, struct | jsonb: times in ISO 8601 with Z, decimals as text, bytes in base64, odd floats by name |

A COPY in binary form is built from whole columns: each value is its length and its bytes, both big-endian, and a row is
the number of its values and then the values. Text form takes ten times as long to build, most of it for times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.latest_answers import near, net
from penstock.connectors.sql import list_of, quoted
from penstock.connectors.text_values import json_texts
from penstock.errors import PlanError

PART = "pg_temp.penstock_part"
_SIMPLE = {
    pa.int8(): "smallint",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.date32(): "date",
    pa.binary(): "bytea",
}
_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_END = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_CHUNK_ROWS = 20_000
# An Arrow column of bytes holds no more than 2 GB.
_CHUNK_BYTES = 1 << 28
_MICROS_TO_2000 = 946_684_800_000_000
_DAYS_TO_2000 = 10_957
_NUMERIC_GROUP = 4
_NUMERIC_MINUS = 0x4000


def declared(kind: pa.DataType) -> str:
    """The type under which PostgreSQL keeps a column, as PostgreSQL spells it."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        return "jsonb"
    raise PlanError(
        f"a column of type {kind} cannot be written to PostgreSQL",
        "no type of PostgreSQL holds all of its values",
        "cast it before the window, such as to double or string",
    )


class NulCharacter(ValueError):
    """A text holds U+0000; the column and the text are its arguments."""


def append(connection: Any, table: str, rows: pa.Table, nul: str | None) -> None:
    """Add rows; `nul` stands for U+0000 in texts, and where it is None such a text raises NulCharacter."""
    if not rows.num_rows:
        return
    columns = list_of(rows.column_names)
    with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(_SIGNATURE)
        for chunk in _chunks(rows):
            copy.write(encoded(chunk, nul))
        copy.write(_END)


def part_of(columns: Sequence[tuple[str, str]]) -> str:
    """The temporary table through which answers go; it empties itself at each commit."""
    said = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS penstock_part ({said}) ON COMMIT DELETE ROWS"


def upsert(connection: Any, table: str, panes: pa.Table, keys: Sequence[str]) -> None:
    """Write the net of the panes over what is there, through the temporary table."""
    upserts, deletes = net(panes, keys)
    if deletes.num_rows:
        _fill(connection, deletes)
        for nulls in null_patterns(deletes):
            connection.execute(_delete(table, keys, nulls).encode())
    if upserts.num_rows:
        _fill(connection, near(upserts, keys))
        names = list_of(upserts.column_names)
        changed = ", ".join(
            f"{quoted(name)} = excluded.{quoted(name)}" for name in upserts.column_names if name not in keys
        )
        connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM {PART} "
            f"ON CONFLICT ({list_of(keys)}) DO UPDATE SET {changed}".encode()
        )


def null_patterns(keys: pa.Table) -> list[frozenset[str]]:
    """Which sets of key columns are null together in some row.

    PostgreSQL finds a null by its index where it is asked for one by name, and not where it is compared.
    """
    some = [name for name in keys.column_names if keys[name].null_count]
    sums = np.zeros(keys.num_rows, np.int64)
    for number, name in enumerate(some):
        sums += keys[name].is_null().to_numpy().astype(np.int64) << number
    found = np.unique(sums).tolist()
    return [frozenset(name for number, name in enumerate(some) if one >> number & 1) for one in found]


def encoded(rows: pa.Table, nul: str | None = None) -> memoryview:
    """Rows as they stand in a binary COPY."""
    count = np.full(rows.num_rows, rows.num_columns, ">i2").view(np.uint8).reshape(-1, 2)
    pieces = [_pieces_of(count)]
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        pieces.extend(_value(name, column.combine_chunks(), nul))
    whole = pc.binary_join_element_wise(*pieces, b"")
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, np.int32)[[whole.offset, whole.offset + len(whole)]]
    return memoryview(data)[ends[0] : ends[1]]


def _chunks(rows: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, rows.num_rows, _CHUNK_ROWS):
        yield from _halves(rows.slice(at, _CHUNK_ROWS))


def _halves(rows: pa.Table) -> Iterator[pa.Table]:
    if rows.nbytes <= _CHUNK_BYTES or rows.num_rows == 1:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from _halves(rows.slice(0, middle))
    yield from _halves(rows.slice(middle))


def _fill(connection: Any, rows: pa.Table) -> None:
    connection.execute(f"TRUNCATE {PART}".encode())
    append(connection, PART, rows, None)


def _delete(table: str, keys: Sequence[str], nulls: frozenset[str]) -> str:
    same = " AND ".join(
        f"had.{quoted(key)} IS NULL AND part.{quoted(key)} IS NULL"
        if key in nulls
        else f"had.{quoted(key)} = part.{quoted(key)}"
        for key in keys
    )
    return f"DELETE FROM {table} AS had USING {PART} AS part WHERE {same}"


def _value(name: str, column: pa.Array, nul: str | None) -> list[pa.Array]:
    """The pieces of a column's values: length and bytes together where all are as long, else one after the other."""
    kind = column.type
    if pa.types.is_nested(kind):
        texts = json_texts(column)
        return _varying(_json_checked(name, column, texts, nul), b"\x01")
    if pa.types.is_string(kind):
        return _varying(_checked(name, column, nul))
    if pa.types.is_binary(kind):
        return _varying(column)
    if pa.types.is_decimal(kind):
        return [_fixed(_numeric(column), column)]
    return [_fixed(_big_endian(column), column)]


def _big_endian(column: pa.Array) -> np.ndarray[Any, Any]:
    """Numbers, times, dates and truths as rows of bytes."""
    kind = column.type
    values: np.ndarray[Any, Any]
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.int64()).fill_null(0).to_numpy()
        # What would wrap around is far older than the oldest time of PostgreSQL, which then says so.
        values = np.maximum(micros, np.iinfo(np.int64).min + 1 + _MICROS_TO_2000) - _MICROS_TO_2000
        form = ">i8"
    elif pa.types.is_date(kind):
        days = column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64) - _DAYS_TO_2000
        values, form = np.maximum(days, np.iinfo(np.int32).min + 1), ">i4"
    elif pa.types.is_boolean(kind):
        values, form = column.fill_null(False).to_numpy(zero_copy_only=False), ">i1"
    else:
        form = ">f8" if pa.types.is_floating(kind) else ">i2" if kind == pa.int8() else ">i8"
        values = column.fill_null(0).to_numpy()
    return values.astype(form).view(np.uint8).reshape(len(values), -1)


def _numeric(column: pa.Array) -> np.ndarray[Any, Any]:
    """Decimals in PostgreSQL's form: groups of four decimal digits, as many for each, zeros where there are none."""
    scale, precision = column.type.scale, column.type.precision
    after = -(-scale // _NUMERIC_GROUP)
    before = -(-(precision - scale) // _NUMERIC_GROUP)
    zero = pa.scalar(Decimal(0), column.type)
    plain = column.fill_null(zero)
    minus = pc.less(plain, zero).to_numpy(zero_copy_only=False)
    sizes = pc.abs(plain)
    words = np.frombuffer(sizes.buffers()[1], "<u4").reshape(-1, 4)[sizes.offset : sizes.offset + len(sizes)]
    limbs = _times([words[:, number].astype(np.uint64) for number in range(4)], 10 ** (after * _NUMERIC_GROUP - scale))
    said = np.zeros((len(plain), _NUMERIC_GROUP + before + after), ">i2")
    said[:, 0], said[:, 1], said[:, 3] = before + after, before - 1, scale
    said[:, 2] = np.where(minus, _NUMERIC_MINUS, 0)
    for group in reversed(range(_NUMERIC_GROUP, said.shape[1])):
        said[:, group] = _divided(limbs, 10_000)
    return said.view(np.uint8).reshape(len(plain), -1)


def _times(limbs: list[np.ndarray[Any, Any]], factor: int) -> list[np.ndarray[Any, Any]]:
    """A number in words of 32 bits, the lowest first, times a small one."""
    carry = np.zeros_like(limbs[0])
    product = []
    for limb in (*limbs, np.zeros_like(limbs[0])):
        carry = limb * np.uint64(factor) + carry
        product.append(carry & np.uint64(0xFFFFFFFF))
        carry >>= np.uint64(32)
    return product


def _divided(limbs: list[np.ndarray[Any, Any]], divisor: int) -> np.ndarray[Any, Any]:
    """Divide a number in words in place; what remains."""
    rest = np.zeros_like(limbs[0])
    for number in reversed(range(len(limbs))):
        limbs[number], rest = np.divmod((rest << np.uint64(32)) | limbs[number], np.uint64(divisor))
    return rest


def _fixed(values: np.ndarray[Any, Any], column: pa.Array) -> pa.Array:
    """Values that are all as long, each after its length."""
    rows, width = values.shape
    said = np.empty((rows, 4 + width), np.uint8)
    said[:, :4] = np.frombuffer(width.to_bytes(4, "big"), np.uint8)
    said[:, 4:] = values
    pieces = _pieces_of(said)
    return pc.if_else(column.is_null(), pa.scalar(_NULL), pieces) if column.null_count else pieces


def _varying(column: pa.Array, before: bytes = b"") -> list[pa.Array]:
    """Values that are not, and the length of each before it."""
    data = column.cast(pa.binary())
    if before:
        data = pc.binary_join_element_wise(before, data, b"")
    lengths = pc.binary_length(data).fill_null(-1).to_numpy()
    return [_pieces_of(lengths.astype(">i4").view(np.uint8).reshape(-1, 4)), data.fill_null(b"")]


def _pieces_of(values: np.ndarray[Any, Any]) -> pa.Array:
    """Rows of bytes as an Arrow column."""
    rows, width = values.shape
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    return pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(np.ascontiguousarray(values))])


def _checked(name: str, column: pa.Array, nul: str | None) -> pa.Array:
    """A column of texts without U+0000."""
    _, offsets, data = column.buffers()
    if data is None:
        return column
    ends = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    if (np.frombuffer(data, np.uint8)[ends[0] : ends[1]] != 0).all():
        return column
    if nul is None:
        raise NulCharacter(name, next(text for text in column.to_pylist() if text and "\x00" in text))
    return pc.replace_substring(column, "\x00", nul)


def _json_checked(name: str, column: pa.Array, texts: pa.Array, nul: str | None) -> pa.Array:
    """JSON whose texts are without U+0000."""
    if not pc.any(pc.match_substring(texts, "\\u0000")).as_py():
        return texts
    found: list[str] = []

    def change(text: str) -> str:
        found.append(text)
        return text.replace("\x00", nul or "")

    values = [_replaced(value, change) for value in column.to_pylist()]
    if found and nul is None:
        raise NulCharacter(name, found[0])
    return json_texts(pa.array(values, column.type))


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    """A nested value whose texts with U+0000 in them are changed."""
    if isinstance(value, str):
        return change(value) if "\x00" in value else value
    if isinstance(value, dict):
        return {name: _replaced(part, change) for name, part in value.items()}
    return [_replaced(part, change) for part in value] if isinstance(value, list) else value
