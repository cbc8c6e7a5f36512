"""Who answers: a small server on this machine alone, for the page and for what the engine plays."""

from __future__ import annotations

from penstock.playground.api import answer, catalogue
from penstock.web.responses import CSP, Reply, as_json, page, pages_of, said
from penstock.web.server import Asked, Guarded

__all__ = ["CSP", "Playground"]

LONGEST = 16_384
NOT_HERE = "worker.js"  # of the copy that has no server


class Playground(Guarded):
    """The server of the playground."""

    command = "penstock play"

    def __init__(self, port: int) -> None:
        self.pages = pages_of("penstock.playground", without=(NOT_HERE,))
        super().__init__(port, Played)


class Played(Asked):
    """One request to the playground."""

    server: Playground

    def got(self) -> Reply:
        """A page, or what there is to play."""
        name = self.asked_for().removeprefix("/") or "index.html"
        return as_json(catalogue()) if name == "lessons.json" else page(self.server.pages, name)

    def posted(self) -> Reply:
        """What a lesson gives."""
        if self.asked_for() != "/play":
            return said(404, "there is no such page")
        if self.headers.get("Content-Type", "").split(";")[0].strip() != "application/json":
            return said(415, "what is asked is JSON")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            return said(413, f"what is asked has up to {LONGEST} bytes, and says how many")
        try:
            asked = self.rfile.read(int(length)).decode()
        except UnicodeDecodeError:
            return said(400, "what is asked is UTF-8")
        return Reply(200, "application/json", answer(asked).encode())
