"""What a page may ask beyond the news: why a pane or an event is as it is; and what a machine may: all numbers."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.api.pipeline import Pipeline
from penstock.dashboard.feed import Followed
from penstock.errors import PenstockError
from penstock.observability.health.run_state import situation
from penstock.observability.health.watcher import look
from penstock.observability.prometheus import CONTENT_TYPE, exposition
from penstock.observability.why.batches import observations
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.event_fate import why_event
from penstock.observability.why.from_samples import sampled_event, sampled_window
from penstock.observability.why.panes import why_window
from penstock.observability.why.replay import replay_of
from penstock.observability.why.text import Told, lines
from penstock.storage.local import Store
from penstock.types.timestamps import show
from penstock.web.responses import Reply, said

LONGEST = 2_000
PLAYED = "Played again from its sources, every event: this is exact."
KEPT = "From what was kept while it ran, which is a sample. `penstock ui FILE CHECKPOINT` plays it again, exactly."
_one_at_a_time = threading.Lock()  # what was observed is read again, all of it


def asked_why(store: Store, address: str, pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Why: of `stage`, `key`, `start` and `end`, or of `event`; in lines with what they are made from, or the error."""
    query = parse_qs(urlsplit(address).query[:LONGEST], keep_blank_values=True)
    given = {name: values[0] for name, values in query.items()}
    stage = int(given.get("stage", "0")) if given.get("stage", "0").isdecimal() else 0
    try:
        with _one_at_a_time:
            return _answer(store, pipeline, given, stage)
    except PenstockError as error:
        return {"error": {"what": error.what, "why": error.why, "instead": error.instead}}


def _answer(store: Store, pipeline: Pipeline | None, given: dict[str, str], stage: int) -> dict[str, Any]:
    """The exact answer where there is a pipeline to play again; else, or where it cannot be played, the sample's."""
    said = KEPT
    if pipeline is not None:
        try:
            return {"made_of": PLAYED, "lines": lines(_played(store, pipeline, given, stage))}
        except Unexplained as error:
            said = f"From what was kept while it ran, which is a sample: {error.what}."
    return {"made_of": said, "lines": lines(_kept(store, given, stage))}


def _played(store: Store, pipeline: Pipeline, given: dict[str, str], stage: int) -> Told:
    """The same as `penstock why FILE CHECKPOINT`."""
    replay = replay_of(pipeline, store, stage + 1)
    if "event" in given:
        return why_event(replay, given["event"])
    text = given.get("key", "")
    key = (text,) if len(replay.plan.keys) == 1 else tuple(text.split(" · ")) if replay.plan.keys else ()
    return why_window(replay, key, _window(given))


def _kept(store: Store, given: dict[str, str], stage: int) -> Told:
    """The same as `penstock why CHECKPOINT`."""
    seen = observations(store)
    if "event" in given:
        return sampled_event(seen, given["event"], stage)
    return sampled_window(seen, given.get("key", ""), _window(given), stage)


def _window(given: dict[str, str]) -> str | None:
    return f"{_instant(given['start'])} to {_instant(given.get('end', ''))}" if "start" in given else None


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
