"""A schema registry: where it is, and how it is asked over HTTP by whoever reads or writes Avro."""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.secret import Secret


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
