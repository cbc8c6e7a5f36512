"""Who may ask: whoever has the key, by this server's own name, and no other page. Looked at before anything else."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from penstock.errors import PenstockError
from penstock.web.responses import HEADERS, Reply, said

HOST = "127.0.0.1"
LOOPBACK = (HOST, "localhost")
SECONDS = 20


class Guarded(ThreadingHTTPServer):
    """A server of pages; `address` is what to open, with the key that lets one in.

    `command` is what starts it, and `port_option` what names its port there.
    """

    daemon_threads = True
    request_queue_size = 32  # a browser opens six connections at once, a page with live events more
    command = "penstock"
    port_option = "--port"

    def __init__(self, port: int, handler: type[Asked], host: str = HOST, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise PenstockError(
                f"port {port} of this machine cannot be used",
                error.strerror or str(error),
                f"write {self.command} {self.port_option} 0 for any free one, or name another",
            ) from None
        self.port = int(self.server_address[1])
        self.host = host
        self.hosts = {f"{name}:{self.port}" for name in (LOOPBACK if host in LOOPBACK else (host,))}
        # A browser shares cookies between the ports of a host.
        self.cookie = f"{self.command.replace(' ', '_')}_{self.port}"

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{self.host}:{self.port}/?token={self.token}"

    def server_bind(self) -> None:
        """Bind without asking a name server for this machine's name, which may take long."""
        from socketserver import TCPServer

        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class Asked(BaseHTTPRequestHandler):
    """One request: who asks is looked at first, whatever is asked for."""

    server: Guarded
    timeout = SECONDS
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:
        """A page, or a value."""
        self._answer(self.refused() or self.got())

    def do_HEAD(self) -> None:
        """The same as GET, without what it gives."""
        self._answer(self.refused() or self.got())

    def do_POST(self) -> None:
        """What is worked out from what is sent."""
        self._answer(self.refused() or self.posted())

    def got(self) -> Reply | None:
        """The answer to one who is in; None where it was sent already."""
        raise NotImplementedError

    def posted(self) -> Reply:
        """The answer to one who is in and sends something."""
        self.close_connection = True
        return said(405, "nothing can be changed here", ("Allow", "GET, HEAD"))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down: an address has the key in it."""

    def refused(self) -> Reply | None:
        """Why whoever asks is not let in, or the way in for one who has the key; None for one who is in."""
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if self.headers.get("Host") not in self.server.hosts:
            return said(403, "this server answers to its own name alone")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            return said(403, "another page may not ask")
        if site is not None and site not in ("same-origin", "none"):
            return said(403, "another page may not ask")
        if self._key_in_address():
            cookie = f"{self.server.cookie}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            return Reply(303, "text/plain", b"", (("Location", "/"), ("Set-Cookie", cookie)))
        if not self.has_key():
            return said(403, f"open the address that {self.server.command} printed: it has the key")
        return None

    def has_key(self) -> bool:
        """Whether the key comes in the cookie."""
        try:
            held = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return False
        return self.server.cookie in held and self.same(held[self.server.cookie].value)

    def same(self, given: str) -> bool:
        """Whether what was given is the key; how long that takes tells nothing."""
        return hmac.compare_digest(given.encode(errors="replace"), self.server.token.encode())

    def asked_for(self) -> str:
        """The path that is asked for, as it was sent; none where it is no address at all."""
        try:
            return urlsplit(self.path).path
        except ValueError:
            return "?"

    def send(self, reply: Reply) -> None:
        """Send an answer, with the headers that every one has."""
        self.begin(reply, ("Content-Length", str(len(reply.body))))
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def begin(self, reply: Reply, *more: tuple[str, str]) -> None:
        """Send all of an answer but its bytes."""
        self.send_response(reply.status)
        charset = "; charset=utf-8" if reply.kind.startswith("text/") and "charset" not in reply.kind else ""
        self.send_header("Content-Type", reply.kind + charset)
        for name, value in (*more, *HEADERS.items(), *reply.headers):
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, reply: Reply | None) -> None:
        if reply is not None:
            self.send(reply)

    def _key_in_address(self) -> bool:
        try:
            parts = urlsplit(self.path)
        except ValueError:
            return False
        given = parse_qs(parts.query).get("token", [""])[0]
        return self.command in ("GET", "HEAD") and parts.path == "/" and self.same(given)
