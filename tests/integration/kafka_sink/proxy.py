"""A small TCP proxy that knows just enough of Kafka to lose one request, or the reply to it."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

END_TXN = 26


class Proxy:
    """Passes everything on between clients and one address, until it is told to lose something."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.loses: str | None = None
        self.then = "silence"
        self.lost = 0
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def servers(self) -> str:
        """What clients call it by."""
        return f"127.0.0.1:{self.port}"

    def lose(self, what: str, then: str = "silence") -> None:
        """Lose the next EndTxn's `reply` or the `request` itself; then keep `silence` or `close` the connection."""
        self.loses, self.then, self.lost = what, then, 0

    def heal(self) -> None:
        """Lose nothing more, and cut what is silent."""
        self.loses = None
        for one in self.open:
            _shut(one)
        self.open.clear()

    def close(self) -> None:
        """Take no more clients."""
        self.listener.close()
        self.heal()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.address)
            except OSError:
                return
            self.open += [client, server]
            _Link(self, client, server).start()


class _Link:
    """One connection: what was asked in it, so that its reply is known."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.marked: set[int] = set()
        self.silent = False

    def start(self) -> None:
        """Pass on in both directions."""
        for work in (self._up, self._down):
            threading.Thread(target=work, daemon=True).start()

    def _up(self) -> None:
        while (frame := _frame(self.client)) is not None:
            key, _, number = struct.unpack(">hhi", frame[:8])
            if key == END_TXN and self.proxy.loses == "request":
                self._lose()
            elif key == END_TXN and self.proxy.loses == "reply":
                self.marked.add(number)
            if not self.silent:
                _send(self.server, frame)
        _shut(self.server)

    def _down(self) -> None:
        while (frame := _frame(self.server)) is not None:
            if struct.unpack(">i", frame[:4])[0] in self.marked and self.proxy.loses == "reply":
                self._lose()
            if not self.silent:
                _send(self.client, frame)
        _shut(self.client)

    def _lose(self) -> None:
        self.silent = True
        self.proxy.loses = None
        self.proxy.lost += 1
        if self.proxy.then == "close":
            _shut(self.client)
            _shut(self.server)


def _frame(source: socket.socket) -> bytes | None:
    head = _exactly(source, 4)
    return None if head is None else _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            some = source.recv(size - len(parts))
        except OSError:
            return None
        if not some:
            return None
        parts += some
    return bytes(parts)


def _send(sink: socket.socket, frame: bytes) -> None:
    with suppress(OSError):
        sink.sendall(struct.pack(">i", len(frame)) + frame)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        one.close()
