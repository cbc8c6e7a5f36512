"""A way to a server that can be bad: slow, shut, or one that loses the answer to a commit.

It knows one thing of what passes: how a client of PostgreSQL says COMMIT.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_AT_ONCE = 1 << 16
# A statement ends with a zero: COMMIT by itself, not the word within another.
_COMMIT = b"COMMIT\x00"


@dataclass
class Proxy:
    """Listens on a port of this machine and forwards to another."""

    target: int
    delay: float = 0.0
    lost: int = 0
    _shut: bool = False
    _lose: int | None = None
    _pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=socket.socket)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def start(self) -> Proxy:
        """Listen and forward."""
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def stop(self) -> None:
        """Break every connection and listen no more."""
        # A thread that waits in accept keeps the port until it is woken.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def lose_next_commit(self, passing: int = 0) -> None:
        """Let the next commit through, after some others, and break the connection in place of its answer."""
        self._lose = passing

    def shut(self) -> None:
        """Break every connection and take no new one."""
        self._shut = True
        self.cut()

    def reopen(self) -> None:
        """Take connections again."""
        self._shut = False

    def cut(self) -> None:
        """Break every connection, on both sides."""
        while self._pairs:
            for end in self._pairs.pop():
                _close(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._shut:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                _close(client)
                continue
            server.settimeout(None)
            pair = (client, server)
            self._pairs.append(pair)
            losing = threading.Event()
            for source, sink in (pair, pair[::-1]):
                threading.Thread(
                    target=self._forward, args=(source, sink, source is client, losing), daemon=True
                ).start()

    def _forward(self, source: socket.socket, sink: socket.socket, asking: bool, losing: threading.Event) -> None:
        """Pass on what comes from one side; once a commit is to be lost, its answer ends the connection."""
        tail = b""
        with suppress(OSError):
            while data := source.recv(_AT_ONCE):
                if self.delay:
                    time.sleep(self.delay)
                if asking:
                    # The word may come in two pieces.
                    if _COMMIT in tail + data and self._lose is not None:
                        if self._lose == 0:
                            losing.set()
                        self._lose = self._lose - 1 if self._lose else None
                    tail = data[1 - len(_COMMIT) :]
                elif losing.is_set():
                    self.lost += 1
                    break
                sink.sendall(data)
        _close(sink)
        _close(source)


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """A proxy to a port of this machine, for the length of a block."""
    one = Proxy(target).start()
    try:
        yield one
    finally:
        one.stop()


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
