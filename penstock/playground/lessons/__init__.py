"""The lessons, in the order in which they are read."""

from penstock.playground.lesson import Lesson
from penstock.playground.lessons import (
    backpressure,
    bad_clock,
    delay,
    delivery,
    hot_key,
    joins,
    lateness,
    log,
    modes,
    patterns,
    rates,
    replay,
    sessions,
    silent,
    triangle,
    two_clocks,
    windows,
)

ORDER = (
    two_clocks, windows, delay, lateness, modes, sessions, silent, bad_clock, joins, rates, patterns, hot_key, delivery,
    log, backpressure, replay, triangle,
)  # fmt: skip
LESSONS: dict[str, Lesson] = {one.LESSON.id: one.LESSON for one in ORDER}
