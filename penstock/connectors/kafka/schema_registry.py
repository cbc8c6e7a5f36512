"""What a schema registry says: the schema of a number, asked once over HTTP and kept."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any

from penstock.connectors.kafka.errors import SourceError
from penstock.connectors.kafka.registry import Registry

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
