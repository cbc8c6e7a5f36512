"""How a row becomes an Avro datum: by the schema that was given, or one made from the columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa

from penstock.connectors.kafka.schema_registry import prefix
from penstock.connectors.sink_errors import SinkError
from penstock.errors import PlanError

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
)


def avro_rows(sink: Kafka, schema: pa.Schema) -> Callable[[pa.Table], list[bytes]]:
    """Rows as Avro data of the schema that was given, or of one made from the columns."""
    given = json.loads(_readable(sink)) if sink.avro_schema is not None else avro_schema(sink.topic, schema)
    try:
        parsed = fastavro.parse_schema(given)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError, TypeError) as error:
        raise PlanError(
            f"the Avro schema of {sink.topic!r} cannot be read: {error}",
            "a record of fields is expected",
            "leave avro_schema out, to have it made from the columns",
        ) from error
    fields = [field["name"] for field in parsed.get("fields", ())] if isinstance(parsed, dict) else []
    missing = (
        [field["name"] for field in parsed["fields"] if field["name"] not in schema.names and "default" not in field]
        if fields
        else ["fields"]
    )
    if missing:
        raise PlanError(
            f"the Avro schema of {sink.topic!r} has the field {missing[0]!r}, which is no column of the output",
            f"the columns are {', '.join(schema.names)}",
            "rename the field, give it a default, or leave avro_schema out",
        )
    wanted = [name for name in schema.names if name in fields]

    @cache
    def head() -> bytes:
        return prefix(sink, given) if sink.registry is not None else b""

    def rows(table: pa.Table) -> list[bytes]:
        buffer, found = io.BytesIO(), []
        chosen = table.select(wanted)
        for row in (_numbers(chosen) if sink.avro_schema is None else chosen).to_pylist():
            buffer.seek(0)
            buffer.truncate()
            try:
                fastavro.schemaless_writer(buffer, parsed, row)
            except (ValueError, TypeError, OverflowError, AttributeError) as error:
                raise SinkError(
                    f"a row cannot be written to {sink.place} as Avro: {error}",
                    "a value does not fit the type that the schema gives its field",
                    "mend avro_schema, or leave it out, to have it made from the columns",
                ) from error
            found.append(head() + buffer.getvalue())
        return found

    return rows


def _numbers(table: pa.Table) -> pa.Table:
    """Times and dates as the numbers that Avro keeps of them: a Python object for each would take most of the time."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column.cast(pa.int32())
        if pa.types.is_date32(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _readable(sink: Kafka) -> str:
    try:
        json.loads(sink.avro_schema or "")
    except ValueError as error:
        raise PlanError(
            f"the Avro schema of {sink.topic!r} is not JSON: {error}",
            "a schema is JSON, as text or dict",
            "leave avro_schema out, to have it made from the columns",
        ) from error
    return sink.avro_schema or ""


def avro_schema(topic: str, schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema of an output's columns: every field may be null."""
    for name in schema.names:
        if not _WORD.fullmatch(name):
            raise PlanError(
                f"the column {name!r} cannot be a field of Avro",
                "Avro's names are letters, digits and '_', and do not begin with a digit",
                'rename it, or write value="json"',
            )
    name = re.sub(r"\W", "_", topic, flags=re.ASCII)
    record = name if not name[:1].isdigit() else f"_{name}"
    fields = [
        {"name": one.name, "type": ["null", _avro_type(one.type, f"{record}_{one.name}")], "default": None}
        for one in schema
    ]
    return {"type": "record", "name": record, "fields": fields}


def _avro_type(kind: pa.DataType, name: str) -> Any:
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, f"{name}_item")]}
    if pa.types.is_struct(kind):
        fields = [
            {"name": one.name, "type": ["null", _avro_type(one.type, f"{name}_{one.name}")], "default": None}
            for one in kind
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_integer(kind):
        return "long" if kind.bit_width > 32 else "int"
    return next((word for fits, word in _PLAIN if fits(kind)), "string")
