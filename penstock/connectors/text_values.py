"""How a value is written as text: one form for SQLite's columns, one for JSON, and back from JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ODD = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def stamps(column: pa.Array) -> pa.Array:
    """Timestamps in UTC as `2026-01-31 12:00:00`, with six digits of a second only where there are any."""
    plain = column.cast(pa.timestamp("us")) if column.type.unit != "us" or column.type.tz else column
    texts = pc.cast(plain, pa.string())
    return pc.replace_substring_regex(texts, r"\.000000$", "")


def json_column(column: pa.Array) -> list[Any]:
    """A column as JSON knows it, in one go where its values need no look."""
    kind = column.type
    values: list[Any]
    if pa.types.is_timestamp(kind):
        # Rows of a batch share few windows: each different time is put into words once.
        seen = column.dictionary_encode()
        words = pc.binary_join_element_wise(pc.replace_substring(stamps(seen.dictionary), " ", "T"), "Z", "")
        values = words.take(seen.indices).to_pylist()
    elif pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        values = column.to_pylist()
    else:
        values = [json_ready(value) for value in column.to_pylist()]
    return values


def json_texts(column: pa.Array) -> pa.Array:
    """Each value as JSON in one canonical form; a null stays a null."""
    texts = [None if value is None else json_text(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def json_text(value: object) -> str:
    """A value as compact JSON."""
    return json.dumps(json_ready(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_ready(value: Any) -> Any:
    """A value as JSON knows it: times in ISO 8601, decimals as text, bytes in base64, odd floats by name."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return f"{moment.isoformat()}Z"
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: json_ready(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(part) for part in value]
    return value.isoformat() if isinstance(value, date) else format(value, "f")


def from_json(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of a type from what JSON kept of it."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return pa.array(values, kind)
    back = _reader(kind)
    return pa.array([None if value is None else back(value) for value in values], kind)


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_floating(kind):
        return lambda value: _ODD[value] if isinstance(value, str) else float(value)
    if pa.types.is_timestamp(kind):
        return lambda value: datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        part = _nullable(_reader(kind.value_type))
        return lambda value: [part(one) for one in value]
    if pa.types.is_struct(kind):
        fields = {field.name: _nullable(_reader(field.type)) for field in kind}
        return lambda value: {name: back(value.get(name)) for name, back in fields.items()}
    return lambda value: value


def _nullable(back: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else back(value)
