"""What a schema registry says: the schema of a number, asked once over HTTP and kept."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

from penstock.registry import Registry
from penstock.sources.kafka_log.errors import SourceError

_PAUSE = 0.5
_known: dict[tuple[Registry, int], str] = {}


def schema_text(registry: Registry, number: int, seconds: float) -> str | None:
    """The Avro schema of a number, as JSON; None where the registry has none of that number."""
    if (registry, number) not in _known:
        text = _asked(registry, number, seconds)
        if text is None:
            return None
        _known[registry, number] = text
    return _known[registry, number]


def _asked(registry: Registry, number: int, seconds: float) -> str | None:
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
        except (OSError, ValueError) as error:
            said = str(getattr(error, "reason", error))
        if time.monotonic() > deadline:
            raise _failed(registry, number, said)
        time.sleep(_PAUSE)


def _answer(registry: Registry, number: int) -> str | None:
    request = registry.request(f"/schemas/ids/{number}", {"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        held = json.load(answer)
    if held.get("references"):
        raise _failed(registry, number, "the schema refers to others, which is not supported")
    return str(held["schema"]) if held.get("schemaType", "AVRO") == "AVRO" else None


def _failed(registry: Registry, number: int, why: str) -> SourceError:
    return SourceError(
        f"the schema registry at {registry.url} did not give the schema {number}",
        why,
        "see that the registry runs and can be reached from the workers, and that the user in its address is right",
    )
