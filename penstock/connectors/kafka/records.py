"""How a row becomes a record: key, value as JSON or Avro, and headers that tell its pane and its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.latest_answers import net
from penstock.connectors.text_values import json_column, json_text
from penstock.engine.columns.keys import canonical, whole
from penstock.errors import PlanError, did_you_mean
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka

TIMING, INDEX, BATCH = "penstock.timing", "penstock.index", "penstock.batch"
Headers = list[tuple[str, bytes]]
Values = Callable[[pa.Table], Sequence[bytes]]


class Record(NamedTuple):
    """What a producer is given; a value of None is a tombstone."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class Encoder(NamedTuple):
    """How the rows of an output become records."""

    target: Target
    upserts: bool
    keys: Callable[[pa.Table], Sequence[bytes | None]]
    values: Values

    def records(self, table: pa.Table, token: str) -> Iterator[Record]:
        """The records of some rows: as they come, or the last answer of each key and window and what was withdrawn."""
        batch: tuple[str, bytes] = (BATCH, token.encode())
        if not self.upserts:
            yield from map(Record, self.keys(table), self.values(table), _headers(table, batch))
            return
        rows, gone = net(table, self.target.keys)
        yield from map(Record, self.keys(rows), self.values(rows), _headers(rows, batch))
        for key in self.keys(gone):
            yield Record(key, None, [batch])


def encoder(sink: Kafka, target: Target) -> Encoder:
    """The encoder of an output; raises PlanError where a column cannot be written, or a key is none."""
    upserts = sink.upserts(target)
    shown = target.schema
    if upserts:
        shown = shown.remove(shown.get_field_index("op"))
    values: Values = json_rows
    if sink.value == "avro":
        from penstock.connectors.kafka.avro_encoding import avro_rows

        values = avro_rows(sink, shown)
    return Encoder(target, upserts, _keys(sink, target, upserts), values)


def json_rows(table: pa.Table) -> list[bytes]:
    """Each row as a compact JSON object, its values as `ps.files` writes them."""
    names = [_quoted(name).replace("%", "%%") for name in table.column_names]
    form = "{" + ",".join(f"{name}:%s" for name in names) + "}"
    columns = [_texts(whole(column)) for column in table.columns]
    return [(form % row).encode() for row in zip(*columns, strict=True)]


def _texts(column: pa.Array) -> list[str]:
    """A column as JSON texts; values that repeat are put into words once."""
    kind = column.type
    if pa.types.is_integer(kind):
        numbers: list[str] = pc.fill_null(column.cast(pa.string()), "null").to_pylist()
        return numbers
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        seen = column.dictionary_encode()
        words = [_quoted(one) if isinstance(one, str) else _BOOLEANS[one] for one in json_column(seen.dictionary)]
        return ["null" if code is None else words[code] for code in seen.indices.to_pylist()]
    return [json_text(value) for value in column.to_pylist()]


_quoted = encode_basestring
_BOOLEANS = {True: "true", False: "false"}


def _keys(sink: Kafka, target: Target, upserts: bool) -> Callable[[pa.Table], Sequence[bytes | None]]:
    """What the key of a record is made of."""
    named = (sink.key,) if isinstance(sink.key, str) else sink.key
    for name in named or ():
        if name not in target.schema.names:
            raise PlanError(
                f"the key of {sink.topic!r} has the column {name!r}, which the {target.kind} do not have",
                f"their columns are {', '.join(target.schema.names)}",
                did_you_mean(str(name), target.schema.names),
            )
    if upserts:
        if named is not None and set(named) != set(target.keys):
            raise PlanError(
                f"the key of {sink.topic!r} is {', '.join(named)}, and an answer is known by {', '.join(target.keys)}",
                "a record replaces the one before it with the same key: answers of two windows would be taken for one",
                "leave key= out, or say compacted=False to append every pane under that key",
            )
        return lambda table: json_rows(_canonical(table, named or target.keys))
    if isinstance(sink.key, str):
        return lambda table: _plain(whole(table[sink.key]))
    own = named if named is not None else tuple(one for one in target.keys if one not in ("window_start", "window_end"))
    if not own:
        return lambda table: [None] * table.num_rows
    return lambda table: json_rows(_canonical(table, own))


def _canonical(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return pa.table([canonical(whole(table[name])) for name in names], names=list(names))


def _plain(column: pa.Array) -> list[bytes | None]:
    """A single column as a key: text and bytes as they are, anything else as JSON; null is no key."""
    texts = column.to_pylist()
    if not pa.types.is_string(column.type) and not pa.types.is_binary(column.type):
        texts = [None if text == "null" else text for text in _texts(canonical(column))]
    return [text.encode() if isinstance(text, str) else text for text in texts]


def _headers(table: pa.Table, batch: tuple[str, bytes]) -> Iterator[Headers]:
    """Timing and index of each pane, and the batch."""
    if "pane_timing" not in table.column_names:
        yield from ([batch] for _ in range(table.num_rows))
        return
    made: dict[tuple[str, int], Headers] = {}
    for pane in zip(table["pane_timing"].to_pylist(), table["pane_index"].to_pylist(), strict=True):
        headers = made.get(pane)
        if headers is None:
            headers = made[pane] = [(TIMING, pane[0].encode()), (INDEX, str(pane[1]).encode()), batch]
        yield headers
