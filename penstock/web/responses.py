"""What is sent back: a status, its bytes, and the headers that every answer has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def said(status: int, text: str, *headers: tuple[str, str]) -> Reply:
    """A sentence."""
    return Reply(status, "text/plain", f"{text}\n".encode(), headers)


def as_json(value: Any) -> Reply:
    """A value; text of other people's making goes out as it is, for a page takes it as text alone."""
    return Reply(200, "application/json", json.dumps(value, allow_nan=False).encode())


def page(pages: dict[str, bytes], name: str) -> Reply:
    """A file by its name, out of those that were read at the start: there is no way to a path."""
    if name not in pages:
        return said(404, "there is no such page")
    return Reply(200, KINDS[name[name.rindex(".") :]], pages[name])


def pages_of(package: str, *, without: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The files that a package serves, by name, read once: those of its folder `static`, and what all pages share."""
    folders = (files(package).joinpath("static"), files("penstock.web").joinpath("static").joinpath("vendor"))
    return {
        one.name: one.read_bytes()
        for folder in folders
        for one in folder.iterdir()
        if one.is_file() and one.name not in without and any(map(one.name.endswith, KINDS))
    }
