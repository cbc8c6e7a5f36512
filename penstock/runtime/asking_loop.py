"""The event loop in which a process asks the outside: one, in a thread of its own, and another if it is held up."""

from __future__ import annotations

import asyncio
import os
import threading

_FAREWELL = 1.0  # seconds for what is under way in a loop that ends


class Loop:
    """An event loop in a thread that does not keep the process from ending."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="penstock-asking", daemon=True)
        self.thread.start()

    def moves(self, seconds: float) -> bool:
        """Whether it does what it is told to within some seconds."""
        told = threading.Event()
        self.loop.call_soon_threadsafe(told.set)
        return told.wait(seconds)

    def leave(self) -> None:
        """Begin another one with the next questions; this one ends when whatever holds it up does."""
        global _loop
        with _lock:
            _loop = None if _loop is self else _loop
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            if left:
                self.loop.run_until_complete(asyncio.wait(left, timeout=_FAREWELL))
            self.loop.close()


_loop: Loop | None = None
_lock = threading.Lock()


def loop_of_this_process() -> Loop:
    """One loop for all questions of a process, so that connections that a function has opened there stay usable."""
    global _loop
    with _lock:
        if _loop is None or _loop.process != os.getpid() or not _loop.thread.is_alive():
            _loop = Loop()
        return _loop
