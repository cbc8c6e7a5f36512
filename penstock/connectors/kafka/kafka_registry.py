"""Under which number does a registry keep a schema: asked once over HTTP, and the number put before every value."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from penstock.connectors.sink_errors import SinkError, down

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka

ANSWER_SECONDS = 10.0


def prefix(sink: Kafka, schema: dict[str, Any]) -> bytes:
    """What a registry's readers expect before a value: a zero, and the number of the schema in four bytes."""
    return b"\0" + _number(sink, json.dumps(schema)).to_bytes(4)


def _number(sink: Kafka, schema: str) -> int:
    """Register the schema of a topic's values; a schema that is there keeps its number."""
    assert sink.registry is not None
    request = sink.registry.request(
        f"/subjects/{sink.topic}-value/versions", {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        json.dumps({"schema": schema}).encode(),
    )  # fmt: skip
    where = f"the schema registry at {sink.registry.url}"
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return int(json.load(answer)["id"])
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(400).decode(errors="replace")
        if error.code >= 500 or error.code == 429:
            raise down(where, f"{error.code} {error.reason}") from None
        raise SinkError(
            f"{where} refuses the schema of {sink.topic}-value: {error.code} {error.reason}",
            said.strip() or "it does not say why",
            "make the schema compatible with the one that is there, or write to another topic",
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise down(where, str(getattr(error, "reason", error))) from None
