"""JSON objects that are alike, as one program writes them: read as columns by where their quotes are.

The same keys in the same order with the same signs between them. Then the n-th quote of each object means the same, and
a block is read with a few operations on whole columns. Whatever is not plainly so is left to the general reader, which
would read the very same rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.formats.coerce import Bad, conformed, from_text, value_of
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import Schema

LONGEST = 1_000  # bytes of an object on average, beyond which the general reader is as fast
DIGITS = 18  # of a whole number that surely fits into 64 bits
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_PAIR = re.compile(rf'( *"([^"\\]*)" *: *"?)(?:(?<=")[^"\\]*|{NUMBER}|true|false|null)("? *)')
_QUOTE, _MINUS, _ZERO = b'"-0'


@dataclass(frozen=True, slots=True)
class Part:
    """A key with the signs before its value, whether that is text, and the signs after it, quotes among them."""

    key: str
    before: bytes
    text: bool
    after: bytes


@dataclass(frozen=True, slots=True)
class Alike:
    """What objects look like: their parts, in order."""

    parts: tuple[Part, ...]

    @property
    def quotes(self) -> int:
        """How many there are in an object."""
        return sum(4 if part.text else 2 for part in self.parts)


def alike(value: bytes) -> Alike | None:
    """What an object looks like, if it is flat and plain, and not so long that others could hardly be like it."""
    if len(value) > 10 * LONGEST:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if not text.startswith("{") or not text.endswith("}") or "\\" in text:
        return None
    at, parts = 1, []
    opened = b"{"
    while found := _PAIR.match(text, at):
        at = found.end() + 1
        sign = text[found.end() : at]
        if sign not in (",", "}"):
            return None
        is_text = found[1].endswith('"')
        if is_text != found[3].startswith('"'):
            return None
        parts.append(Part(found[2], opened + found[1].encode(), is_text, found[3].encode() + sign.encode()))
        opened = b""
        if sign == "}":
            break
    keys = [part.key for part in parts]
    return Alike(tuple(parts)) if parts and at == len(text) and len(set(keys)) == len(keys) else None


def columns(
    look: Alike, text: bytes, starts: np.ndarray, ends: np.ndarray, schema: Schema, limits: Limits = DEFAULT
) -> tuple[pa.RecordBatch, Bad] | None:
    """The rows of objects that lie in a text with a sign between them; None where one is not like the others."""
    if len(text) > LONGEST * len(starts) or b"\\" in text or not _is_utf8(text):
        return None
    if len(look.parts) > limits.items or int((ends - starts).max()) > limits.size:
        return None
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    if len(quotes) != look.quotes * len(starts) or np.count_nonzero(data < 32) != len(starts) - 1:
        return None
    walk = _Walk(data, pa.py_buffer(text), quotes.reshape(len(starts), look.quotes), starts, ends)
    spans = walk.spans(look)
    if spans is None:
        return None
    kinds = {column.name: column.type for column in schema.columns}
    made: dict[str, tuple[pa.Array, Bad]] = {}
    for part, (low, high) in zip(look.parts, spans, strict=True):
        kind = kinds.get(part.key)
        if kind is None:
            if not walk.sound(part, low, high):
                return None
            continue
        column = walk.column(part, kind, low, high)
        if column is None:
            return None
        made[part.key] = column
    arrays: list[pa.Array] = []
    bad: Bad = {}
    for name, kind in kinds.items():
        array, wrong = made.get(name) or (pa.nulls(len(starts), arrow_type(kind)), {})
        arrays.append(array)
        for row, why in wrong.items():
            bad.setdefault(row, f"column {name!r}: {why}")
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema)), bad


@dataclass(frozen=True, slots=True)
class _Walk:
    """A block, where its quotes are by object, and where its objects start and end."""

    data: np.ndarray
    buffer: pa.Buffer
    quotes: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def spans(self, look: Alike) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Where each value lies, once every sign around them is seen to be as it should."""
        found, n, at = [], 0, self.starts
        for part, following in zip(look.parts, (*look.parts[1:], None), strict=True):
            if not self._same(at, part.before):
                return None
            low = at + len(part.before)
            n += 2
            if part.text:
                if not np.array_equal(self.quotes[:, n], low - 1):
                    return None
                high = self.quotes[:, n + 1]
                n += 2
            elif following is None:
                high = self.ends - len(part.after)
            else:
                high = self.quotes[:, n] - following.before.index(b'"') - len(part.after)
            if bool((high < low).any()) or not self._same(high, part.after):
                return None
            found.append((low, high))
            at = high + len(part.after)
        return found if np.array_equal(at, self.ends) else None

    def _same(self, at: np.ndarray, signs: bytes) -> bool:
        """Whether these signs stand at these places."""
        if len(at) and int(at.max()) + len(signs) > len(self.data):
            return False
        return all(bool((self.data[at + i] == sign).all()) for i, sign in enumerate(signs))

    def column(self, part: Part, kind: str, low: np.ndarray, high: np.ndarray) -> tuple[pa.Array, Bad] | None:
        """Values of a declared column; None where the general reader is to judge."""
        if part.text:
            if kind == "string":
                return self._slices(low, high), {}
            if kind in ("timestamp", "date") or kind.startswith("decimal"):
                return from_text(self._slices(low, high), kind, partial(value_of, kind))
            return None
        if kind in ("int", "long", "timestamp"):
            numbers = self._whole_numbers(low, high)
            if numbers is None or (kind == "int" and bool((abs(numbers) >= 2**31).any())):
                return None
            return conformed(pa.array(numbers), kind) if kind == "timestamp" else (pa.array(numbers), {})
        if kind in ("float", "double") and self._are(NUMBER, low, high):
            made = self._slices(low, high).cast(pa.float64())
            return (made, {}) if pc.all(pc.is_finite(made)).as_py() else None
        if kind.startswith("decimal") and self._are(NUMBER, low, high):
            return from_text(self._slices(low, high), kind, partial(value_of, kind))
        if kind == "boolean" and self._are("true|false", low, high):
            return pc.equal(self._slices(low, high), "true"), {}
        return None

    def sound(self, part: Part, low: np.ndarray, high: np.ndarray) -> bool:
        """Whether values that nobody asked for are JSON at all."""
        return part.text or self._are(f"{NUMBER}|true|false|null", low, high)

    def _are(self, pattern: str, low: np.ndarray, high: np.ndarray) -> bool:
        return bool(pc.all(pc.match_substring_regex(self._slices(low, high), f"^(?:{pattern})$")).as_py())

    def _whole_numbers(self, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
        negative = self.data[low] == _MINUS
        signed = bool(negative.any())
        first = low + negative if signed else low
        width = high - first
        least, most = int(width.min()), int(width.max())
        if least < 1 or most > DIGITS or bool(((self.data[first] == _ZERO) & (width > 1)).any()):
            return None
        numbers = np.zeros(len(low), np.int64)
        for i in range(most):
            digit = self.data[np.minimum(first + i, high - 1) if i >= least else first + i] - np.uint8(_ZERO)
            if i < least:
                if bool((digit > 9).any()):
                    return None
                numbers = numbers * 10 + digit
            else:
                there = i < width
                if bool((digit[there] > 9).any()):
                    return None
                numbers = np.where(there, numbers * 10 + digit, numbers)
        return np.where(negative, -numbers, numbers) if signed else numbers

    def _slices(self, low: np.ndarray, high: np.ndarray) -> pa.Array:
        """Stretches of the block: every other element of an array whose elements touch."""
        edges = np.empty(2 * len(low), np.int32)
        edges[0::2], edges[1::2] = low, high
        touching = pa.Array.from_buffers(pa.string(), len(edges) - 1, [None, pa.py_buffer(edges), self.buffer])
        return touching.take(pa.array(np.arange(0, len(edges), 2)))


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
