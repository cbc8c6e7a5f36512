"""Calls of a user's function that may block, throw anything, or never come back: in threads, or awaited."""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

IDLE = 30.0  # seconds after which a thread that has nothing to do ends


class Quit(Exception):
    """A function tried to end the thread or the process it runs in."""


class Threads:
    """Up to so many threads for calls that block; they live on between calls, and one that hangs keeps its own.

    They do not keep the process from ending.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[Any], Any], Any]] = queue.SimpleQueue()
        self._alive = self._open = 0
        self._lock = threading.Lock()

    def call(self, function: Callable[[Any], Any], argument: Any) -> Future[Any]:
        """Have a function called as soon as a thread is free."""
        future: Future[Any] = Future()
        with self._lock:
            self._open += 1
            self._calls.put((future, function, argument))
            if self._alive < min(self.most, self._open):
                self._alive += 1
                threading.Thread(target=self._run, name="penstock-call", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            try:
                future, function, argument = self._calls.get(timeout=IDLE)
            except queue.Empty:
                with self._lock:
                    if self._calls.empty():
                        self._alive -= 1
                        return
                continue
            if future.set_running_or_notify_cancel():
                _settle(future, function, argument)
            with self._lock:
                self._open -= 1


async def guarded(function: Callable[[Any], Any], argument: Any) -> Any:
    """What an async function gives; one that tries to end the process only fails."""
    try:
        given = function(argument)
        return await given if inspect.isawaitable(given) else given
    except (SystemExit, KeyboardInterrupt) as error:
        raise Quit(repr(error)).with_traceback(error.__traceback__) from None


def _settle(future: Future[Any], function: Callable[[Any], Any], argument: Any) -> None:
    try:
        given = function(argument)
    except Exception as error:
        # A future cannot hold this one.
        future.set_exception(Quit(repr(error)) if isinstance(error, StopIteration) else error)
    except BaseException as error:
        future.set_exception(Quit(repr(error)).with_traceback(error.__traceback__))
    else:
        future.set_result(given)
