"""What every server that is started here needs: a port of its own, and to be waited for until it answers."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(
    process: subprocess.Popen[bytes], ask: Callable[[], object], away: type[Exception], seconds: float = 60.0
) -> bool:
    """Wait until a question no longer says that the server is away; False where it has ended, or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            ask()
            return True
        except away:
            time.sleep(0.05)
    return False


def last_words(log: Path) -> str:
    """The end of what a server has said."""
    return "; ".join(log.read_text(errors="replace").strip().splitlines()[-3:])[:400]
