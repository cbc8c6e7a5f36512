"""What a message becomes: the columns of its value, and those of its key, headers, partition, offset and time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.schema_registry import Registry, registry_at
from penstock.errors import PlanError, did_you_mean
from penstock.types.schema import Column, Schema, checked, schema as parsed

VALUES = ("json", "avro", "text", "bytes")
KEYS = {"text": "string", "bytes": "binary", "long": "long", "int": "int"}
BESIDE = {
    "key": "",
    "headers": "string",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "kafka_time": "timestamp",
}
ALONE = {"text": "string", "bytes": "binary"}


@dataclass(frozen=True, slots=True)
class Shape:
    """How a message is read: `body` are the columns of its value, `beside` what else is one, and under which name."""

    value: str
    body: Schema
    beside: tuple[tuple[str, str], ...] = ()
    key: str = "text"
    avro: str | None = None
    registry: Registry | None = None

    @property
    def schema(self) -> Schema:
        """All columns of a row."""
        types = {**BESIDE, "key": KEYS[self.key]}
        return checked((*self.body.columns, *(Column(name, types[what]) for what, name in self.beside)))


def shape(value: str, columns: Any, beside: Any, key: str | None, avro: Any, registry: Any) -> Shape:
    """A shape as it was written, or the refusal."""
    if value not in VALUES:
        raise PlanError(
            f"there is no value {value!r}",
            f"the value of a message is read as {', '.join(VALUES)}",
            did_you_mean(str(value), VALUES, 'write value="json"'),
        )
    if key is not None and key not in KEYS:
        raise PlanError(
            f"there is no key {key!r}",
            "a key is text, bytes, or a whole number of 8 or 4 bytes as Kafka's own clients write it",
            did_you_mean(str(key), KEYS, 'write key="text"'),
        )
    if columns is None and value in ALONE:
        columns = f"value {ALONE[value]}"
    body = parsed(columns)
    _refuse_body(value, body)
    places = _beside(beside)
    if key is not None and "key" not in dict(places):
        places = (*places, ("key", "key"))
    made = Shape(value, body, places, key or "text", _avro(value, avro, registry), _registry(value, registry))
    made.schema  # noqa: B018 - refuses a name that is there twice
    return made


def _refuse_body(value: str, body: Schema) -> None:
    if value in ALONE and [column.type for column in body.columns] != [ALONE[value]]:
        raise PlanError(
            f'value="{value}" with the schema ({body})',
            f"a value that is {value} is one column of type {ALONE[value]}",
            f'write schema="{body.columns[0].name} {ALONE[value]}"',
        )
    for column in body.columns:
        if column.type == "binary" and value == "json":
            raise PlanError(
                f"the column {column.name!r} is binary, and json has no bytes",
                "a text can hold bytes only in some code, which nobody has named",
                f'declare it as "{column.name} string", or write the messages as Avro',
            )


def _beside(given: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        given = [given]
    pairs = tuple(given.items()) if isinstance(given, Mapping) else tuple((what, what) for what in given)
    for what, name in pairs:
        if what not in BESIDE or not isinstance(name, str):
            raise PlanError(
                f"a message has no {what!r} that could be a column",
                f"beside its value it has: {', '.join(BESIDE)}",
                did_you_mean(str(what), BESIDE, 'write columns=("key", "kafka_time"), or columns={"key": "player"}'),
            )
    return pairs


def _avro(value: str, given: Any, registry: Any) -> str | None:
    if value != "avro":
        if given is not None:
            raise PlanError(f'avro_schema with value="{value}"', "only Avro has such a schema", 'write value="avro"')
        return None
    if given is None and registry is None:
        raise PlanError(
            'value="avro" without a schema',
            "an Avro message does not say what it is made of",
            'write avro_schema={"type": "record", ...}, or registry="http://localhost:8081"',
        )
    if given is None:
        return None
    try:
        held = json.loads(given) if isinstance(given, str) else json.loads(json.dumps(given))
    except (ValueError, TypeError) as error:
        raise _no_record(str(error)) from None
    if not isinstance(held, dict) or held.get("type") != "record":
        raise _no_record("it is no record")
    return json.dumps(held, sort_keys=True)


def _no_record(why: str) -> PlanError:
    return PlanError(
        f"avro_schema is not the schema of a record: {why}",
        "the fields of a record become columns",
        'write it as JSON: {"type": "record", "name": "Score", "fields": [{"name": "points", "type": "long"}]}',
    )


def _registry(value: str, given: Any) -> Registry | None:
    if given is None:
        return None
    if value != "avro":
        raise PlanError(
            f'registry with value="{value}"',
            "a schema registry says what the Avro messages are made of",
            'write value="avro", or leave registry out',
        )
    return registry_at(given)
