"""Where is the dashboard served? On this machine alone, unless another address is named with a word that says so."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.web.server import HOST, LOOPBACK

PORT = 8766
TOKEN = "PENSTOCK_UI_TOKEN"
SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Place:
    """A port, an address, and the key; without a key one is made up."""

    port: int = 0
    host: str = HOST
    token: str | None = None


def place_of(port: int, host: str = HOST, *, exposed: bool = False) -> Place:
    """A place that may be served from; refused where others could reach it and nobody said that they may."""
    return Place(port, _host(host, exposed), _token())


def _host(host: str, exposed: bool) -> str:
    if host in LOOPBACK:
        return host
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and (address.is_unspecified or address.version == 6):
        raise PenstockError(
            f"the dashboard cannot be served on {host}",
            "a page is let in by the one name of its server, which is what keeps other pages out",
            "name the one IPv4 address or the name by which it is reached: --host 10.0.0.7 --exposed",
        )
    if not exposed:
        raise PenstockError(
            f"on {host} others than this machine could reach the dashboard",
            "it shows keys and rows of the stream, and what is said to it goes over the network as plain text",
            "reach it through ssh instead (ssh -L 8766:127.0.0.1:8766 there), or say that it is meant: --exposed",
        )
    return host


def _token() -> str | None:
    given = os.environ.get(TOKEN, "")
    if given and (
        len(given) < SHORTEST or not given.isascii() or not all(one.isalnum() or one in "-_" for one in given)
    ):
        raise PenstockError(
            f"{TOKEN} is not a key",
            f"a key has {SHORTEST} letters, digits, - and _ at least; its value is not shown here",
            "leave it out and one is made up; or take what python -c 'import secrets; print(secrets.token_hex())' says",
        )
    return given or None
