"""What a schema registry says: the schema of a number, asked once over HTTP and kept."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.connectors.kafka.errors import SourceError
from penstock.connectors.sink_errors import SinkError, down
from penstock.credentials import Secret, revealed
from penstock.errors import PlanError

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka


@dataclass(frozen=True, slots=True)
class Registry:
    """Its address, and the user and password that it asks for."""

    url: str
    authorization: Secret | None = None

    def request(self, path: str, headers: Mapping[str, str], body: bytes | None = None) -> urllib.request.Request:
        """A question to it, or with a body something that it is told."""
        asked = urllib.request.Request(f"{self.url}{path}", body, dict(headers))
        if self.authorization is not None:
            code = base64.b64encode(self.authorization.reveal().encode()).decode()
            asked.add_header("Authorization", f"Basic {code}")
        return asked


def registry_at(address: Any) -> Registry:
    """The registry at an address; a user and password that stand in it, quoted as in any address, are kept apart."""
    parts = urlsplit(revealed(address)) if isinstance(address, (str, Secret)) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise PlanError(
            "registry is not an address",
            "a schema registry keeps the schemas of Avro messages, and is asked over HTTP",
            'write registry="http://localhost:8081"',
        )
    login, _, host = parts.netloc.rpartition("@")
    return Registry(f"{parts.scheme}://{host}{parts.path.rstrip('/')}", Secret(unquote(login)) if login else None)


_PAUSE = 0.5
_known: dict[tuple[Registry, int], str] = {}


def schema_text(registry: Registry, number: int, seconds: float) -> tuple[str | None, str]:
    """The Avro schema of a number, as JSON; None and the reason where the registry has none that could be used."""
    if (registry, number) not in _known:
        answer = _asked(registry, number, seconds)
        if answer is None or answer.get("schemaType", "AVRO") != "AVRO":
            return None, f"the registry has no Avro schema {number}"
        if answer.get("references"):
            return None, f"the Avro schema {number} of the registry refers to others, which is not supported"
        _known[registry, number] = str(answer["schema"])
    return _known[registry, number], ""


def _asked(registry: Registry, number: int, seconds: float) -> dict[str, Any] | None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _answer(registry, number)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            if error.code < 500 and error.code != 429:
                raise _failed(registry, number, f"it answers {error.code} {error.reason}") from None
            said = f"it answers {error.code} {error.reason}"
        except (OSError, ValueError, RecursionError) as error:
            said = str(getattr(error, "reason", error))
        if time.monotonic() > deadline:
            raise _failed(registry, number, said)
        time.sleep(_PAUSE)


def _answer(registry: Registry, number: int) -> dict[str, Any]:
    request = registry.request(f"/schemas/ids/{number}", {"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        found = json.load(answer)
    if not isinstance(found, dict) or "schema" not in found:
        raise ValueError("its answer has no schema")
    return found


def _failed(registry: Registry, number: int, why: str) -> SourceError:
    return SourceError(
        f"the schema registry at {registry.url} did not give the schema {number}",
        why,
        "see that the registry runs and can be reached from the workers, and that the user in its address is right",
    )


ANSWER_SECONDS = 10.0


def prefix(sink: Kafka, schema: dict[str, Any]) -> bytes:
    """What a registry's readers expect before a value: a zero, and the number of the schema in four bytes."""
    return b"\0" + _number(sink, json.dumps(schema)).to_bytes(4)


def _number(sink: Kafka, schema: str) -> int:
    """Register the schema of a topic's values; a schema that is there keeps its number."""
    assert sink.registry is not None
    request = sink.registry.request(
        f"/subjects/{sink.topic}-value/versions",
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        json.dumps({"schema": schema}).encode(),
    )
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
