"""JSON values of messages: put together as lines for the reader of JSON lines, so that both read the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.chunks import Piece, without
from penstock.connectors.formats.json_lines import Lines, apart
from penstock.connectors.formats.json_uniform import alike, columns
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.connectors.formats.message_bytes import Values, kept
from penstock.connectors.source import Undecoded
from penstock.types.arrow import arrow_schema
from penstock.types.schema import Schema


def json_values(values: Values, schema: Schema, limits: Limits = DEFAULT) -> Iterator[Piece]:
    """The rows of values that are one after the other; the offset of a row is its place among them."""
    sizes = values.sizes
    ends = np.cumsum(sizes + 1) - 1
    starts = ends - sizes
    text = values.lines()
    if (whole := _alike(values, text, starts, ends, schema, limits)) is not None:
        yield whole
        return
    full = np.flatnonzero(sizes)
    lines = Lines(text, starts[full], ends[full], 0, "", limits)
    unseen = np.ones(len(values), bool)
    for piece in apart(lines, schema):
        placed = _placed(piece, starts, values)
        unseen[placed.offsets] = False
        for bad in placed.undecoded:
            unseen[bad.offset] = False
        yield placed
    if unseen.any():
        yield _blank(values, np.flatnonzero(unseen).tolist(), schema)


def _alike(
    values: Values, text: bytes, starts: np.ndarray, ends: np.ndarray, schema: Schema, limits: Limits
) -> Piece | None:
    """All values as columns, where they look like the first."""
    look = alike(values[0]) if len(values) else None
    try:
        made = None if look is None else columns(look, text, starts, ends, schema, limits)
    except pa.ArrowInvalid:
        return None
    if made is None:
        return None
    rows, bad = made
    return without(rows, np.arange(len(values)), bad, {row: kept(values[row]) for row in bad})


def _placed(piece: Piece, starts: np.ndarray, values: Values) -> Piece:
    """A piece whose offsets are places of bytes, with places among values."""
    undecoded = []
    for bad in piece.undecoded:
        at = int(np.searchsorted(starts, bad.offset))
        reason = bad.reason.removeprefix(": ").replace("the line is longer", "the value is longer")
        undecoded.append(replace(bad, offset=at, raw=kept(values[at]), reason=reason))
    whole = len(piece.offsets) == len(values)
    offsets = np.arange(len(values)) if whole else np.searchsorted(starts, piece.offsets)
    return Piece(offsets, piece.rows, tuple(undecoded))


def _blank(values: Values, places: Sequence[int], schema: Schema) -> Piece:
    """Values with nothing in them: a file may have empty lines, and they are no rows of it; a message is kept."""
    blank = tuple(Undecoded(at, kept(values[at]), "the value is empty") for at in places)
    return Piece(np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=arrow_schema(schema)), blank)
