"""Asking the outside: in order, so many at a time, each for so long and so often; whatever hangs, it ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.diagnostics.user_functions import message_of
from penstock.errors import DataError
from penstock.plan.operators.enrich import enrich_rule
from penstock.runtime import async_calls
from penstock.runtime.async_calls import Answer, Asker


def asker(function: Any, **changed: Any) -> Asker:
    given = {"output": "n long", "on": "n", "concurrency": 10, "timeout": "5 seconds", "retries": 0,
             "backoff": "1 millisecond", "give_up": "1 minute", "cache": None, "cache_rows": 10,
             "on_error": "quarantine", **changed}  # fmt: skip
    return Asker(enrich_rule(function, **given))


def questions(number: int) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(number)]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done here does not take longer than that."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


class Busy:
    """Counts how many calls are under way, and how many there were at most."""

    def __init__(self) -> None:
        self.now = self.most = self.calls = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.now -= 1


def test_answers_come_in_the_order_of_the_questions_however_long_each_takes() -> None:
    async def look(row: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.02 * (row["n"] % 3))
        return row

    assert asker(look).ask(questions(30)) == [Answer({"n": n}) for n in range(30)]
    assert asker(look).ask([]) == []


def test_no_more_are_under_way_than_concurrency_says_and_no_fewer() -> None:
    busy = Busy()

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        with busy:
            await asyncio.sleep(0.02)
        return row

    assert len(asker(look, concurrency=7).ask(questions(40))) == 40
    assert (busy.most, busy.calls) == (7, 40)


def test_a_plain_function_runs_in_as_many_threads() -> None:
    busy, names = Busy(), set()

    def look(row: dict[str, Any]) -> dict[str, Any]:
        names.add(threading.current_thread().name)
        with busy:
            time.sleep(0.02)
        return row

    asked = asker(look, concurrency=5)
    assert asked.ask(questions(30)) == [Answer({"n": n}) for n in range(30)]
    assert (busy.most, busy.calls, names) == (5, 30, {"penstock-call"})


def test_threads_live_on_so_that_what_they_hold_can_be_used_again() -> None:
    local, made = threading.local(), []

    def look(row: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(local, "session"):
            local.session = object()
            made.append(local.session)
        time.sleep(0.005)
        return row

    asked = asker(look, concurrency=3)
    for _ in range(4):
        asked.ask(questions(12))
    assert len(made) == 3


def test_connections_of_an_event_loop_can_be_used_again() -> None:
    loops = set()

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        loops.add(asyncio.get_running_loop())
        return row

    for _ in range(3):
        asker(look).ask(questions(2))
    assert len(loops) == 1


def test_it_may_be_asked_from_within_an_event_loop() -> None:
    """As in a notebook."""

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        return row

    async def cell() -> list[Answer]:
        return asker(look).ask(questions(2))

    assert asyncio.run(cell()) == [Answer({"n": 0}), Answer({"n": 1})]


def test_a_plain_function_that_gives_something_to_await() -> None:
    async def look(row: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return row

    assert asker(lambda row: look(row)).ask(questions(2)) == [Answer({"n": 0}), Answer({"n": 1})]


def test_a_function_may_change_what_it_is_given() -> None:
    def look(row: dict[str, Any]) -> dict[str, Any]:
        row["n"] += 1
        if row["n"] == 1:
            raise ValueError("once more")
        return row

    failed = asker(look, retries=1).ask(questions(1))[0].failed or ""
    assert message_of(failed) == "ValueError: once more; asked 2 times"
    assert re.search(r" · in look \(test_async_calls\.py, line \d+\) · with \{'n': 0\}$", failed)


# Attempts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_what_throws_is_asked_again_so_often(plain: bool) -> None:
    calls: list[int] = []

    def look(row: dict[str, Any]) -> dict[str, Any]:
        calls.append(row["n"])
        if calls.count(row["n"]) <= row["n"]:
            raise ConnectionError("down")
        return row

    async def later(row: dict[str, Any]) -> dict[str, Any]:
        return look(row)

    found = asker(look if plain else later, retries=2).ask(questions(4))
    assert found[:3] == [Answer({"n": 0}), Answer({"n": 1}), Answer({"n": 2})]
    assert message_of(found[3].failed or "") == "ConnectionError: down; asked 3 times"
    assert [calls.count(n) for n in range(4)] == [1, 2, 3, 3]


def test_between_attempts_it_waits_twice_as_long_each_time() -> None:
    times: list[float] = []

    async def look(row: dict[str, Any]) -> None:
        times.append(time.monotonic())
        raise ConnectionError("down")

    asker(look, retries=3, backoff="40 milliseconds").ask(questions(1))
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert [wait >= least for wait, least in zip(waits, (0.04, 0.08, 0.16), strict=True)] == [True] * 3


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
@pytest.mark.parametrize("plain", [False, True])
def test_a_function_that_tries_to_end_more_than_itself_only_fails(plain: bool, error: BaseException) -> None:
    def look(row: dict[str, Any]) -> None:
        raise error

    async def later(row: dict[str, Any]) -> None:
        raise error

    functions = (look, lambda row: later(row)) if plain else (later,)
    for function in functions:
        (found,) = asker(function).ask(questions(1))
        assert found.row is None
        assert found.failed


def test_a_reason_is_text_and_not_without_end() -> None:
    async def look(row: dict[str, Any]) -> Any:
        if row["n"]:
            return "<html>" + "x" * 10_000
        raise ValueError("\ud800" + "x" * 10_000)

    for answer in asker(look).ask(questions(2)):
        assert answer.failed is not None
        assert len(answer.failed) < 500
        answer.failed.encode()


def test_fail_stops_at_the_first_failure_and_ends_what_is_under_way() -> None:
    ended = []

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] == 3:
            raise ConnectionError("down")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(row["n"])
            raise
        return row

    with within(5), pytest.raises(DataError, match=r"look has no answer for {'n': 3}: ConnectionError: down"):
        asker(look, on_error="fail", concurrency=5, timeout="1 minute").ask(questions(1000))
    time.sleep(0.05)
    assert sorted(ended) == [0, 1, 2, 4]


# A service that hangs -------------------------------------------------------------------------------------------------


def test_a_call_that_takes_too_long_is_ended_and_asked_again() -> None:
    ended: list[int] = []

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] == 1 and len(ended) < 2:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(row["n"])
        return row

    with within(5):
        found = asker(look, timeout="50 milliseconds", retries=2).ask(questions(3))
    assert found == [Answer({"n": 0}), Answer({"n": 1}), Answer({"n": 2})]
    assert ended == [1, 1]


def test_a_service_that_hangs_costs_as_long_as_it_may() -> None:
    calls = []

    async def look(row: dict[str, Any]) -> None:
        calls.append(row)
        await asyncio.sleep(3600)

    with within(5):
        found = asker(look, timeout="50 milliseconds", retries=2, concurrency=20).ask(questions(40))
    assert set(found) == {Answer(None, "no answer within 50 milliseconds; asked 3 times")}
    assert len(calls) == 3 * 40


def test_where_nothing_is_answered_for_long_the_rest_is_given_up() -> None:
    calls = []

    async def look(row: dict[str, Any]) -> None:
        calls.append(row)
        await asyncio.sleep(3600)

    with within(5):
        found = asker(look, timeout="50 milliseconds", give_up="200 milliseconds", concurrency=2).ask(questions(10_000))
    assert len(calls) < 30
    assert found[0] == Answer(None, "no answer within 50 milliseconds")
    assert found[-1] == Answer(None, "given up: look has answered nothing for 200 milliseconds")


def test_a_slow_service_that_answers_is_not_given_up() -> None:
    async def look(row: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.03)
        return row

    found = asker(look, give_up="100 milliseconds", concurrency=2, timeout="80 milliseconds").ask(questions(20))
    assert all(answer.failed is None for answer in found)


def test_a_plain_function_that_hangs_keeps_its_thread_and_nothing_waits_for_it() -> None:
    let_go, calls = threading.Event(), []

    def look(row: dict[str, Any]) -> dict[str, Any]:
        calls.append(row["n"])
        if row["n"] == 0:
            let_go.wait(60)
        return row

    asked = asker(look, timeout="100 milliseconds", concurrency=3)
    with within(5):
        found = asked.ask(questions(9))
    assert found == [Answer(None, "no answer within 100 milliseconds"), *(Answer({"n": n}) for n in range(1, 9))]
    let_go.set()


def test_when_all_threads_hang_the_rest_is_given_up_and_no_more_threads_are_made() -> None:
    let_go, calls = threading.Event(), []

    def look(row: dict[str, Any]) -> dict[str, Any]:
        calls.append(row["n"])
        let_go.wait(60)
        return row

    asked = asker(look, timeout="50 milliseconds", give_up="150 milliseconds", concurrency=4, retries=1)
    with within(10):
        for _ in range(3):
            assert all(answer.failed for answer in asked.ask(questions(500)))
    assert len(calls) == 4
    let_go.set()
    time.sleep(0.1)
    assert asked.ask(questions(2)) == [Answer({"n": 0}), Answer({"n": 1})]


def test_an_async_function_that_does_not_end_when_told_to_has_no_more_than_its_slots() -> None:
    running = Busy()
    over = threading.Event()

    async def look(row: dict[str, Any]) -> None:
        with running:
            while not over.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue

    asked = asker(look, timeout="50 milliseconds", give_up="150 milliseconds", concurrency=3, retries=1)
    with within(10):
        found = asked.ask(questions(200))
    assert all(answer.failed for answer in found)
    assert running.most == 3
    over.set()
    time.sleep(0.2)


def test_an_async_function_that_blocks_the_loop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_calls, "GRACE", 0.2)
    let_go = threading.Event()

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] == 1:
            let_go.wait(60)
        return row

    with within(10):
        found = asker(look, timeout="100 milliseconds", concurrency=1).ask(questions(3))
    why = "look holds up the event loop: an async function must await what waits"
    assert found == [Answer({"n": 0}), Answer(None, why), Answer(None, why)]

    async def quick(row: dict[str, Any]) -> dict[str, Any]:
        return row

    assert asker(quick).ask(questions(1)) == [Answer({"n": 0})]
    with pytest.raises(DataError, match="holds up the event loop"), within(10):
        asker(look, timeout="100 milliseconds", on_error="fail").ask([{"n": 1}])
    let_go.set()


def test_a_loop_that_was_left_behind_ends_when_it_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(async_calls, "GRACE", 0.1)
    left = async_calls.loop_of_this_process()

    async def look(row: dict[str, Any]) -> None:
        time.sleep(0.6)

    with caplog.at_level(logging.ERROR):
        assert asker(look, timeout="50 milliseconds").ask(questions(1))[0].failed
        left.thread.join(10)
    assert not left.thread.is_alive()
    assert left.loop.is_closed()
    assert caplog.records == []
    assert async_calls.loop_of_this_process() is not left


HANGS = """
import time
from penstock.runtime.async_calls import Asker
from penstock.plan.operators.enrich import enrich_rule

def look(row):
    time.sleep(3600)

rule = enrich_rule(look, output="n long", on=None, concurrency=2, timeout="50 milliseconds", retries=0, backoff="0",
                   give_up="1 second", cache=None, cache_rows=1, on_error="null")
print(Asker(rule).ask([{"n": 1}])[0].failed)
"""


def test_calls_that_hang_do_not_keep_the_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout.strip(), done.stderr) == ("no answer within 50 milliseconds", "")
