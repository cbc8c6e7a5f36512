"""Flat Avro records as columns: every message is at the same field, and all of them take a step at a time.

Avro has no lengths to jump by: a record is read from its first field to its last. Here that is done for all records
of a block together, in numpy, with the place that each has reached; a record that cannot be read so is left over.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.message_bytes import Values

PAD = 16  # bytes behind the last message that may be looked at
_PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_ONE = np.uint64(1)
_HIGH_BITS = np.uint64(0x8080808080808080)
_LAST_OF_ONE = np.uint64(0x80)
_PAIRS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its kind, its Arrow type if it is a logical one, and which branch of its union is null."""

    name: str
    kind: str
    logical: pa.DataType | None = None
    null: int | None = None
    size: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flat:
    """A record whose fields are all plain."""

    fields: tuple[Field, ...]

    def columns(self, values: Values, head: int, wanted: Collection[str]) -> tuple[pa.RecordBatch, np.ndarray]:
        """The wanted columns of the records that could be read, and which ones those are; a head is passed over."""
        walk = Walk.over(values, head)
        read = [(one.name, walk.field(one)) for one in self.fields]
        walk.good &= walk.at == walk.end
        rows = pa.array(np.flatnonzero(walk.good))
        every = bool(walk.good.all())
        made = {
            name: column if every else column.take(rows)
            for name, column in ((name, walk.column(one)) for name, one in read if name in wanted)
        }
        if made:
            return pa.RecordBatch.from_pydict(made), walk.good
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([]))), walk.good


@dataclass
class Read:
    """What was read of a field: numbers, or where its bytes are; and where it is null."""

    field: Field
    numbers: np.ndarray | None = None
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    null: np.ndarray | None = None


@dataclass
class Walk:
    """Where each record of a block has been read to."""

    data: np.ndarray
    buffer: pa.Buffer
    at: np.ndarray
    end: np.ndarray
    good: np.ndarray = field(init=False)
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.good = np.ones(len(self.at), bool)
        # The eight bytes from each place on, as one number: overlapping, and nothing is copied.
        self.words = np.ndarray(len(self.data) - 7, "<u8", self.data, strides=(1,))

    @staticmethod
    def over(values: Values, head: int) -> Walk:
        """The records laid end to end, each after the bytes of its head."""
        data = values.laid(PAD)
        edges = values.edges - values.edges[0]
        return Walk(data, pa.py_buffer(data), edges[:-1] + head, edges[1:])

    def field(self, one: Field) -> Read:
        """One field of every record; those for which it goes wrong are not good any more and stay where they are."""
        null = None
        if one.null is not None:
            branch = self._varint()
            self._refuse((branch != 0) & (branch != 1))
            null = branch == one.null
        read = self._plain(one, null)
        read.null = null
        self._refuse(self.at > self.end)
        return read

    def _plain(self, one: Field, null: np.ndarray | None) -> Read:
        if one.kind == "null":
            return Read(one)
        if one.kind in ("int", "long", "enum"):
            numbers = self._varint(null)
            if one.kind == "int":
                self._refuse((numbers < -(2**31)) | (numbers >= 2**31))
            if one.kind == "enum":
                self._refuse((numbers < 0) | (numbers >= len(one.symbols)))
            return Read(one, numbers)
        if one.kind == "boolean":
            numbers = self._fixed("u1", null)
            self._refuse(numbers > 1)
            return Read(one, numbers == 1)
        if one.kind in ("float", "double"):
            return Read(one, self._fixed("<f4" if one.kind == "float" else "<f8", null))
        return self._bytes(one, null)

    def _bytes(self, one: Field, null: np.ndarray | None) -> Read:
        fixed = np.full(len(self.at), one.size) if null is None else np.where(null, 0, one.size)
        sizes = fixed if one.kind == "fixed" else self._varint(null)
        self._refuse((sizes < 0) | (sizes > self.end - self.at))
        there = self.good if null is None else self.good & ~null
        starts = self.at
        self.at = starts + np.where(there, sizes, 0)
        return Read(one, starts=starts, ends=self.at)

    def _varint(self, null: np.ndarray | None = None) -> np.ndarray:
        """A zigzag number of every record, but of those whose value is null."""
        words = self.words[self.at]
        stops = ~words & _HIGH_BITS
        last = stops & -stops  # the high bit of the byte with which the number ends, or zero if that is further on
        longer = last == 0
        longest = 8 if longer.any() else int(last.max(initial=_ONE)).bit_length() >> 3
        numbers = _seven_bits(words & (last - _ONE), longest)
        sizes = _sizes(last, longest)
        if null is not None:
            numbers[null], sizes[null], longer[null] = 0, 0, False
        self.at = self.at + sizes
        if longest == 8 and longer.any():
            self._longer(np.flatnonzero(longer), numbers)
        signed: np.ndarray = (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
        return signed

    def _longer(self, rows: np.ndarray, numbers: np.ndarray) -> None:
        """The rest of numbers of more than eight bytes; one that has more than ten is none."""
        at = self.at[rows] + 8
        for shift in (56, 63):
            low = self.data[np.minimum(at, len(self.data) - 1)]
            numbers[rows] |= (low & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
            self.at[rows] = at + 1
            more = low >= 0x80
            rows, at = rows[more], at[more] + 1
        self.good[rows] = False

    def _fixed(self, kind: str, null: np.ndarray | None) -> np.ndarray:
        """A number of so many bytes of every record."""
        width = np.dtype(kind).itemsize
        at = self.at
        numbers = self.data[at[:, None] + np.arange(width)].view(kind)[:, 0]
        self.at = at + width if null is None else at + np.where(null, 0, width)
        return numbers

    def _refuse(self, bad: np.ndarray) -> None:
        if bad.any():
            self.good &= ~bad
        if not self.good.all():
            self.at = np.where(self.good, self.at, self.end)

    def column(self, read: Read) -> pa.Array:
        """What was read of a field, as Arrow has it; anything where the record is not good."""
        one = read.field
        if one.kind == "null":
            return pa.nulls(len(self.at))
        if read.starts is not None and read.ends is not None:
            return self._slices(read.starts, read.ends, read.null)
        assert read.numbers is not None
        sound = read.numbers if bool(self.good.all()) else np.where(self.good, read.numbers, read.numbers.dtype.type(0))
        made = pa.array(sound, mask=read.null)
        if one.kind == "enum":
            return pa.array(one.symbols, pa.string()).take(made)
        if one.logical is None:
            return made
        return made.cast(pa.int32()).view(one.logical) if one.kind == "int" else made.view(one.logical)

    def _slices(self, starts: np.ndarray, ends: np.ndarray, null: np.ndarray | None) -> pa.Array:
        """Stretches of the block: every other element of an array whose elements touch, the gaps between left out."""
        if not len(starts):
            return pa.array([], pa.binary())
        edges = np.empty(2 * len(starts), np.int32)
        edges[0::2], edges[1::2] = starts, ends
        touching = pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), self.buffer])
        rows = pa.array(np.arange(0, len(edges), 2), mask=null)
        return touching.take(rows)


def _sizes(last: np.ndarray, longest: int) -> np.ndarray:
    """How many bytes each number has, by the high bit of its last one; most are short."""
    if longest <= 2:
        return np.add(last > _LAST_OF_ONE, 1, dtype=np.int64)
    return np.frexp(last.astype(np.float64))[1] >> 3


def _seven_bits(words: np.ndarray, longest: int) -> np.ndarray:
    """Seven bits of each of so many bytes side by side: pairs of bytes, then of pairs, then of fours."""
    words = words & ~_HIGH_BITS
    for width, (low, high, shift) in zip((1, 2, 4), _PAIRS, strict=True):
        if longest > width:
            words = (words & low) | ((words & high) >> shift)
    return words


def flat(schema: Any) -> Flat | None:
    """A record's schema as flat fields, or None where it is not flat."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return None
    fields = [_field(one["name"], one["type"]) for one in schema["fields"]]
    kept = tuple(one for one in fields if one is not None)
    return Flat(kept) if len(kept) == len(fields) else None


def _field(name: str, kind: Any) -> Field | None:
    if isinstance(kind, list):
        branches = [_field(name, one) for one in kind]
        others = [one for one in branches if one is not None and one.kind != "null"]
        if len(kind) != 2 or len(others) != 1 or branches.count(None) or "null" not in kind:
            return None
        (one,) = others
        return Field(name, one.kind, one.logical, kind.index("null"), one.size, one.symbols)
    if isinstance(kind, str):
        return Field(name, kind) if kind in _PLAIN else None
    word, logical = kind.get("type"), kind.get("logicalType")
    if not isinstance(word, str) or not isinstance(logical, (str, type(None))):
        return None
    known = None if logical is None else _LOGICAL.get((word, logical))
    if word == "enum":
        symbols = tuple(kind["symbols"])
        return Field(name, "enum", symbols=symbols) if symbols else None  # a column cannot be taken of nothing
    if logical is not None and known is None:
        return None
    if word == "fixed":
        return Field(name, "fixed", size=int(kind["size"]))
    return Field(name, word, known) if word in _PLAIN else None
