"""The lessons, in the order in which they are read."""

from penstock.playground.lesson import Lesson
from penstock.playground.lessons import (
    bad_clock,
    delay,
    hot_key,
    joins,
    modes,
    sessions,
    silent,
    two_clocks,
    windows,
)

LESSONS: dict[str, Lesson] = {
    one.LESSON.id: one.LESSON
    for one in (two_clocks, windows, delay, modes, sessions, silent, bad_clock, joins, hot_key)
}
