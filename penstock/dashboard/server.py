"""Who answers for the dashboard: pages, a stream of news, why a pane is as it is, and numbers for machines.

Nothing is ever written: there is GET and HEAD, and everything else is refused. What is asked for has a name out of a
fixed list, never a path.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.dashboard.embedded import Place
from penstock.dashboard.feed import Followed
from penstock.dashboard.plane_encoding import line
from penstock.dashboard.summary import asked_why, metrics
from penstock.errors import PenstockError
from penstock.observability.run_metadata import kept_plan
from penstock.web.responses import Reply, as_json, page, pages_of, said
from penstock.web.server import Asked, Guarded

LISTENERS = 16
HEARTBEAT = 10.0
LAST_WORDS = 0.2  # seconds in which pages hear how a run has ended
METRICS = "/metrics"


class Dashboard(Guarded):
    """The server of the dashboard of one checkpoint; with its pipeline, batches can be played again to say why."""

    def __init__(
        self,
        checkpoint: str,
        place: Place | None = None,
        *,
        command: str = "penstock ui",
        port_option: str = "--port",
        pipeline: Pipeline | None = None,
    ) -> None:
        where = place or Place()
        self.command, self.port_option, self.pipeline = command, port_option, pipeline
        self.pages = pages_of("penstock.dashboard")
        self.followed = Followed(checkpoint)
        self.listeners = threading.Semaphore(LISTENERS)
        self.listening = 0
        self.threads: list[threading.Thread] = []
        super().__init__(where.port, Looked, where.host, where.token)

    def start(self) -> Dashboard:
        """Answer, and follow the run, in threads of its own."""
        for what in (self.followed.keep_looking, lambda: self.serve_forever(poll_interval=0.1)):
            thread = threading.Thread(target=what, name="penstock-ui", daemon=True)
            thread.start()
            self.threads.append(thread)
        return self

    def stop(self) -> None:
        """End, and let go of the port."""
        if self.listening:
            with suppress(Exception):
                self.followed.look_at_last()
            time.sleep(LAST_WORDS)
        self.followed.end()
        if self.threads:
            self.shutdown()
        for thread in self.threads:
            thread.join(5)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Someone has hung up: nothing to tell."""


class Looked(Asked):
    """One request to the dashboard."""

    server: Dashboard

    def got(self) -> Reply | None:
        """A page, a value, or the stream of news."""
        if self.asked_for() == "/events" and self.command == "GET":
            return self._stream()
        try:
            return self._page()
        except PenstockError as error:
            return said(500, error.what)

    def __getattr__(self, name: str) -> Any:
        """Any other method is refused, once it is clear who asks."""
        if name.startswith("do_"):
            return self.do_POST
        raise AttributeError(name)

    def has_key(self) -> bool:
        """Whether the key comes in the cookie; a machine that asks for numbers may have it as a bearer's token."""
        given = self.headers.get("Authorization", "")
        if self.asked_for() == METRICS and given.startswith("Bearer "):
            return self.same(given.removeprefix("Bearer ").strip())
        return super().has_key()

    def _page(self) -> Reply:
        followed = self.server.followed
        answers: dict[str, Callable[[], Reply]] = {
            "/events": lambda: Reply(200, "text/event-stream", b""),
            "/plan.json": lambda: as_json(kept_plan(followed.store)),
            "/why.json": lambda: as_json(asked_why(followed.store, self.path, self.server.pipeline)),
            METRICS: lambda: metrics(followed),
        }
        asked = self.asked_for()
        if asked in answers:
            return answers[asked]()
        return page(self.server.pages, asked.removeprefix("/") or "index.html")

    def _stream(self) -> Reply | None:
        if not self.server.listeners.acquire(blocking=False):
            return said(503, "too many pages listen; close one")
        self.server.listening += 1
        try:
            self.begin(Reply(200, "text/event-stream", b""), ("X-Accel-Buffering", "no"))
            with suppress(OSError):
                self._tell()
        finally:
            self.server.listening -= 1
            self.server.listeners.release()
        return None

    def _tell(self) -> None:
        """Send what is new until one side hangs up; a page that comes back says what it has heard last."""
        followed = self.server.followed
        begun, _, upto = self.headers.get("Last-Event-ID", "").partition("-")
        heard, stood = int(upto) if upto.isdecimal() and len(upto) < 16 else 0, 0
        self.wfile.write(b"retry: 1000\n\n")
        while not followed.ended.is_set():
            news = followed.since(begun, heard, stood, seconds=HEARTBEAT)
            if news.begun != begun:
                self._event("begun", line(news.begun))
            if news.standing is not None:
                self._event("standing", news.standing)
            if news.batches:
                self._event("batches", b"[" + b",".join(news.batches) + b"]", f"{news.begun}-{news.upto}")
            if news.standing is None and not news.batches:
                self.wfile.write(b": still here\n\n")
            self.wfile.flush()
            begun, heard, stood = news.begun, news.upto, news.stood

    def _event(self, kind: str, data: bytes, number: str = "") -> None:
        named = f"id: {number}\n" if number else ""
        self.wfile.write(f"event: {kind}\n{named}data: ".encode() + data + b"\n\n")
