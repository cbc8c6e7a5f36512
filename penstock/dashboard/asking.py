"""What a page may ask beyond the news: why a pane or an event is as it is; and what a machine may: all numbers."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.checkpoint.store import Store
from penstock.dashboard.followed import Followed
from penstock.errors import PenstockError
from penstock.instant import show
from penstock.monitor.metrics import CONTENT_TYPE, exposition
from penstock.monitor.situation import situation
from penstock.monitor.watching import look
from penstock.monitor.why.batches import observations
from penstock.monitor.why.errors import Unexplained
from penstock.monitor.why.sampled import sampled_event, sampled_window
from penstock.monitor.why.words import lines
from penstock.web.reply import Reply, said

LONGEST = 2_000
_one_at_a_time = threading.Lock()  # what was observed is read again, all of it


def asked_why(store: Store, address: str) -> dict[str, Any]:
    """Why: of `stage`, `key`, `start` and `end`, or of `event`; the answer in lines, or the error in three parts."""
    query = parse_qs(urlsplit(address).query[:LONGEST], keep_blank_values=True)
    given = {name: values[0] for name, values in query.items()}
    try:
        with _one_at_a_time:
            return {"lines": _lines(store, given)}
    except PenstockError as error:
        return {"error": {"what": error.what, "why": error.why, "instead": error.instead}}


def _lines(store: Store, given: dict[str, str]) -> list[str]:
    stage = int(given.get("stage", "0")) if given.get("stage", "0").isdecimal() else 0
    seen = observations(store)
    if "event" in given:
        return lines(sampled_event(seen, given["event"], stage))
    window = None
    if "start" in given:
        window = f"{_instant(given['start'])} to {_instant(given.get('end', ''))}"
    return lines(sampled_window(seen, given.get("key", ""), window, stage))


def _instant(given: str) -> str:
    """A time as a page has it, in microseconds or as a word, as people write it."""
    if given in ("-inf", "+inf"):
        return given
    try:
        return show(int(given))
    except ValueError:
        raise Unexplained(
            f"{given[:40]!r} is not a time",
            "a window is asked for by its start and end, in microseconds since 1970",
            "ask for one that the page shows",
        ) from None


def metrics(followed: Followed) -> Reply:
    """Numbers for Prometheus; of a run that has not made its checkpoint there are none yet."""
    try:
        now = situation(followed.store)
    except PenstockError as error:
        return said(503, error.what)
    return Reply(200, CONTENT_TYPE, exposition(look(followed.observed(), now)).encode())
