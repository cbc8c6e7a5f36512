"""What needs attention? From what was observed of a run, and whether it is at work, to sentences with their cause.

A pure function: time is an argument. The thresholds are the constants in capitals of `about_run`, `about_time`,
`about_load` and `about_data`; `docs/monitoring.md` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.observability.health import data_checks, event_time_checks, load_checks, run_checks
from penstock.observability.health.concern import LEVELS, NOTE, URGENT, WARNING, Concern, by_urgency
from penstock.observability.health.run_state import Situation
from penstock.observability.observation import Observation
from penstock.observability.overview import recent

__all__ = ["LEVELS", "NOTE", "URGENT", "WARNING", "Concern", "attention", "calm"]

Question = Callable[[Sequence[Observation], Situation], Iterator[Concern]]

QUESTIONS: tuple[Question, ...] = (
    run_checks.run,
    run_checks.stall,
    run_checks.unobserved,
    run_checks.replays,
    event_time_checks.holding,
    event_time_checks.silence,
    event_time_checks.idle,
    event_time_checks.late,
    load_checks.sinks,
    load_checks.lag,
    load_checks.batches,
    load_checks.log_notes,
    data_checks.quarantine,
    data_checks.kept,
    data_checks.hot_keys,
    data_checks.state,
)


def attention(observed: Sequence[Observation], now: Situation) -> list[Concern]:
    """What needs attention, most urgent first; an empty list where nothing does.

    The observations are in order, each batch once, as `latest_of_each` gives them; those of the last ten minutes count.
    """
    some = recent(observed)
    return by_urgency(concern for question in QUESTIONS for concern in question(some, now))


def calm(observed: Sequence[Observation], now: Situation) -> str:
    """What is said where nothing needs attention."""
    if now.finished:
        return "nothing needs attention: the input is at its end and every window is closed"
    if not observed:
        return "nothing needs attention: no batch was observed yet"
    return "nothing needs attention: the watermark moves, the sinks take what they are given, nothing piles up"
