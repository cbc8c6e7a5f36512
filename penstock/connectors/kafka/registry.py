"""A schema registry: where it is, and how it is asked over HTTP by whoever reads or writes Avro."""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.credentials import Secret, revealed
from penstock.errors import PlanError


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
