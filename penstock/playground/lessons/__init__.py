"""The lessons, in the order in which they are read."""

from penstock.playground.lesson import Lesson
from penstock.playground.lessons import (
    accumulation_modes,
    backpressure,
    bad_clock,
    delivery,
    hot_key,
    idle_partition,
    joins,
    kappa_lambda,
    lateness,
    log,
    patterns,
    sessions,
    temporal_join,
    trade_offs,
    two_clocks,
    watermark_delay,
    windows,
)

ORDER = (
    two_clocks,
    windows,
    watermark_delay,
    lateness,
    accumulation_modes,
    sessions,
    idle_partition,
    bad_clock,
    joins,
    temporal_join,
    patterns,
    hot_key,
    delivery,
    log,
    backpressure,
    kappa_lambda,
    trade_offs,
)
LESSONS: dict[str, Lesson] = {one.LESSON.id: one.LESSON for one in ORDER}
