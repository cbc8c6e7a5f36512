"""Who may ask, and who answers: a small server on this machine alone, for the page and for what the engine plays."""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

from penstock.errors import PenstockError
from penstock.playground.answering import answer, catalogue

HOST = "127.0.0.1"
LONGEST = 16_384
SECONDS = 20
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
NOT_HERE = "worker.js"  # of the copy that has no server


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Playground(ThreadingHTTPServer):
    """The server; `address` is what to open, with the key that lets one in."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self.pages = {one.name: one.read_bytes() for one in files("penstock.playground").joinpath("static").iterdir()
                      if one.name != NOT_HERE}  # fmt: skip
        try:
            super().__init__((HOST, port), Asked)
        except OSError as error:
            raise PenstockError(
                f"port {port} of this machine cannot be used",
                error.strerror or str(error),
                "write penstock play --port 0 for any free one, or name another",
            ) from None
        self.port = self.server_address[1]
        self.hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        self.cookie = f"penstock_play_{self.port}"  # a browser shares cookies between the ports of a host

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{HOST}:{self.port}/?token={self.token}"


class Asked(BaseHTTPRequestHandler):
    """One request: who asks is looked at first, whatever is asked for."""

    server: Playground
    timeout = SECONDS
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:
        """A page, or what there is to play."""
        self._send(self._refused() or self._page())

    def do_HEAD(self) -> None:
        """The same as GET, without the page."""
        self._send(self._refused() or self._page())

    def do_POST(self) -> None:
        """What a lesson gives."""
        self._send(self._refused() or self._played())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down: an address has the key in it."""

    def _refused(self) -> Reply | None:
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if self.headers.get("Host") not in self.server.hosts:
            return _text(403, "this server answers to its own name alone")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            return _text(403, "another page may not ask")
        if site is not None and site not in ("same-origin", "none"):
            return _text(403, "another page may not ask")
        if self._key_in_address():
            cookie = f"{self.server.cookie}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            return Reply(303, "text/plain", b"", (("Location", "/"), ("Set-Cookie", cookie)))
        if not self._key_in_cookie():
            return _text(403, "open the address that penstock play printed: it has the key")
        return None

    def _key_in_address(self) -> bool:
        parts = urlsplit(self.path)
        given = parse_qs(parts.query).get("token", [""])[0]
        return self.command in ("GET", "HEAD") and parts.path == "/" and self._same(given)

    def _key_in_cookie(self) -> bool:
        try:
            held = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return False
        return self.server.cookie in held and self._same(held[self.server.cookie].value)

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _page(self) -> Reply:
        """A file by its name, out of those that were read at the start: there is no way to a path."""
        name = urlsplit(self.path).path.removeprefix("/") or "index.html"
        if name == "lessons.json":
            return Reply(200, "application/json", json.dumps(catalogue()).encode())
        if name not in self.server.pages:
            return _text(404, "there is no such page")
        ending = name[name.rindex(".") :]
        return Reply(200, KINDS[ending], self.server.pages[name])

    def _played(self) -> Reply:
        if urlsplit(self.path).path != "/play":
            return _text(404, "there is no such page")
        if self.headers.get("Content-Type", "").split(";")[0].strip() != "application/json":
            return _text(415, "what is asked is JSON")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            return _text(413, f"what is asked has up to {LONGEST} bytes, and says how many")
        try:
            asked = self.rfile.read(int(length)).decode()
        except UnicodeDecodeError:
            return _text(400, "what is asked is UTF-8")
        return Reply(200, "application/json", answer(asked).encode())

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        charset = "; charset=utf-8" if reply.kind.startswith("text/") else ""
        self.send_header("Content-Type", reply.kind + charset)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in (*HEADERS.items(), *reply.headers):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)


def _text(status: int, said: str) -> Reply:
    return Reply(status, "text/plain", f"{said}\n".encode())
