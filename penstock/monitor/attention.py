"""What needs attention? From what was observed of a run, and whether it is at work, to sentences with their cause.

A pure function: time is an argument. The thresholds are the constants in capitals of `about_run`, `about_time`,
`about_load` and `about_data`; `docs/monitoring.md` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.monitor import about_data, about_load, about_run, about_time
from penstock.monitor.concern import LEVELS, NOTE, URGENT, WARNING, Concern, by_urgency
from penstock.monitor.observation import Observation
from penstock.monitor.overview import recent
from penstock.monitor.situation import Situation

__all__ = ["LEVELS", "NOTE", "URGENT", "WARNING", "Concern", "attention", "calm"]

Question = Callable[[Sequence[Observation], Situation], Iterator[Concern]]

QUESTIONS: tuple[Question, ...] = (
    about_run.run, about_run.stall, about_run.unobserved, about_run.replays,
    about_time.holding, about_time.silence, about_time.idle, about_time.late,
    about_load.sinks, about_load.lag, about_load.batches, about_load.log_notes,
    about_data.quarantine, about_data.kept, about_data.hot_keys, about_data.state,
)  # fmt: skip


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
