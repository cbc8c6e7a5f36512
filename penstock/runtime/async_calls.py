"""How are many questions asked at a time, and none of them for ever: attempts, time-outs, calls that never come back.

One thread of a process has an event loop, in which all questions are asked; a function that is not async is called in
threads beside it. What cannot be ended is left behind: a call that hangs in a thread keeps it and is not waited for,
and a loop that an async function holds up without awaiting is left to it, and another one is begun.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError as NotYet
from typing import Any, NamedTuple

from penstock.diagnostics.user_functions import error_alone, place_and_value
from penstock.plan.operators.enrich import Enrich, unanswered
from penstock.types.durations import words
from penstock.types.validate import Nonconforming

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


GRACE = 5.0  # seconds in which a loop that is not held up must find time to say so
_SECOND = 1_000_000


class Answer(NamedTuple):
    """What a question was answered: the columns, or why there are none."""

    row: dict[str, Any] | None
    failed: str | None = None


class Asker:
    """Asks the function of a rule."""

    def __init__(self, rule: Enrich) -> None:
        self.rule = rule
        self.threads = Threads(rule.asking.concurrency)
        self._slots: tuple[Loop, asyncio.Semaphore] | None = None

    def ask(self, questions: Sequence[dict[str, Any]]) -> list[Answer]:
        """The answers, in the order of the questions; raises the first failure where the rule says so."""
        if not questions:
            return []
        loop = loop_of_this_process()
        asked = _Round(self.rule, questions, self.threads, self._slots_in(loop))
        done = asyncio.run_coroutine_threadsafe(asked.run(), loop.loop)
        try:
            self._watch(asked, loop, done)
        except BaseException:
            done.cancel()
            raise
        if asked.failed is not None:
            number, reason = asked.failed
            raise unanswered(self.rule, questions[number], reason)
        return [Answer(None, asked.over) if answer is None else answer for answer in asked.answers]

    def _watch(self, asked: _Round, loop: Loop, done: Future[None]) -> None:
        """Wait for all answers, as long as the loop moves on."""
        seconds = self.rule.asking.timeout / _SECOND + GRACE
        while True:
            try:
                return done.result(seconds)
            except NotYet:
                if done.done():
                    raise
            if not loop.moves(seconds):
                loop.leave()
                return asked.end(f"{self.rule.name} holds up the event loop: an async function must await what waits")

    def _slots_in(self, loop: Loop) -> asyncio.Semaphore:
        """As many slots as calls may be under way; a call that does not end when it is told to keeps its own."""
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self.rule.asking.concurrency))
        return self._slots[1]


class _Round:
    """The questions of a batch on their way."""

    def __init__(
        self, rule: Enrich, questions: Sequence[dict[str, Any]], threads: Threads, slots: asyncio.Semaphore
    ) -> None:
        self.rule, self.questions, self.threads, self.slots = rule, questions, threads, slots
        self.answers: list[Answer | None] = [None] * len(questions)
        self.left: Iterator[int] = iter(range(len(questions)))
        self.failed: tuple[int, str] | None = None
        self.over: str | None = None
        self.heard = time.monotonic()

    async def run(self) -> None:
        """Ask as many at a time as may be, until all are answered or, where one failure is enough, until that."""
        several = min(self.rule.asking.concurrency, len(self.answers))
        asking = [asyncio.ensure_future(self._some()) for _ in range(several)]
        try:
            await asyncio.wait(asking, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for one in asking:
                one.cancel()
            ended = await asyncio.gather(*asking, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, _Enough):
                raise error

    def end(self, reason: str) -> None:
        """Give up what has no answer yet; what comes in later is not heard."""
        self.over = reason
        if self.rule.on_error == "fail" and None in self.answers:
            self.failed = (self.answers.index(None), reason)
        self.answers = [Answer(None, reason) if one is None else one for one in self.answers]

    async def _some(self) -> None:
        """One question after the other."""
        for number in self.left:
            answer = await self._answer(self.questions[number])
            if self.answers[number] is None:
                self.answers[number] = answer
            if answer.failed is not None and self.rule.on_error == "fail":
                self.failed = self.failed or (number, answer.failed)
                raise _Enough

    async def _answer(self, question: Mapping[str, Any]) -> Answer:
        """A question, asked until it is answered, as often as may be."""
        asking, attempts, said, place = self.rule.asking, 0, [], ""
        while attempts <= asking.retries:
            if attempts:
                await asyncio.sleep(asking.wait(attempts) / _SECOND)
            if self._given_up():
                break
            attempts += 1
            try:
                row = self.rule.row(await self._once(question))
            except _Unanswered as error:
                said, place = [str(error)], ""
                continue
            except Exception as error:
                said, place = [error_alone(error, question)], place_and_value(error, self.rule.function, question)
                if isinstance(error, Nonconforming):  # it would say the same again
                    return Answer(None, f"{said[0]}{place}")
                continue
            self.heard = time.monotonic()
            return Answer(row)
        said += [f"asked {attempts} times"] if attempts > 1 else []
        said += [self.over] if self.over and attempts <= asking.retries else []
        return Answer(None, "; ".join(said) + place)

    async def _once(self, question: Mapping[str, Any]) -> Any:
        """One attempt."""
        if not self.rule.in_threads:
            return await self._awaited(guarded(self.rule.function, dict(question)))
        call = self.threads.call(self.rule.function, dict(question))
        given = await self._within(asyncio.wrap_future(call))
        # A plain function may give what an async one would: a lambda around it, for one.
        return await self._awaited(guarded(lambda _: given, None)) if inspect.isawaitable(given) else given

    async def _awaited(self, call: Coroutine[Any, Any, Any]) -> Any:
        """What an async call gives; one that does not end when it is told to is one of those under way still."""
        try:
            async with asyncio.timeout(self.rule.asking.timeout / _SECOND if self.slots.locked() else None):
                await self.slots.acquire()
        except (TimeoutError, asyncio.CancelledError) as error:
            call.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise _Unanswered("calls that did not end when they were told to leave no room for another") from None
        task = asyncio.ensure_future(call)
        task.add_done_callback(lambda _: self.slots.release())
        return await self._within(task)

    async def _within(self, task: asyncio.Future[Any]) -> Any:
        """What a call gives, if it comes in time; it is told to end otherwise, and not waited for."""
        task.add_done_callback(_seen)
        limit = self.rule.asking.timeout
        try:
            done, _ = await asyncio.wait({task}, timeout=limit / _SECOND)
        finally:
            task.cancel()
        if not done:
            raise _Unanswered(f"no answer within {words(limit)}")
        if task.cancelled():
            raise _Unanswered("the call cancelled itself")
        return task.result()

    def _given_up(self) -> bool:
        """Whether there was no answer to anything for so long that the rest is not asked any more."""
        patience = self.rule.asking.patience
        if self.over is None and time.monotonic() - self.heard > patience / _SECOND:
            self.over = f"given up: {self.rule.name} has answered nothing for {words(patience)}"
        return self.over is not None


class _Unanswered(Exception):
    """An attempt without an answer, and why."""


class _Enough(Exception):
    """A failure that ends all."""


def _seen(task: asyncio.Future[Any]) -> None:
    """Look at how a call ended, for it may be that nobody waits for it."""
    if not task.cancelled():
        task.exception()
