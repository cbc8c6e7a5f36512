"""How long: `"5 minutes"` and `timedelta` to microseconds and back, in this one place."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from penstock.errors import PlanError, did_you_mean

Duration = str | timedelta

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_LONGEST = 1_000_000 * DAY
_UNITS = {
    "microsecond": MICROSECOND,
    "millisecond": MILLISECOND,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}
_SHORT = {
    "us": "microsecond",
    "µs": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Zµ]+)\s*")


def microseconds(duration: Duration, what: str = "duration") -> int:
    """The length of a duration in microseconds.

    >>> microseconds("1 hour 30 minutes")
    5400000000
    """
    if isinstance(duration, timedelta):
        return _bounded(duration // timedelta(microseconds=1), duration, what)
    if not isinstance(duration, str):
        raise _no_duration(duration, what)
    text = duration.strip()
    if text == "0":
        return 0
    total, at = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise _unreadable(duration, what)
        unit = _unit(part[2], duration, what)
        try:
            total += round(float(part[1]) * unit) if "." in part[1] else int(part[1]) * unit
        except (ValueError, OverflowError):  # more digits than Python reads, or than a double can count to
            raise _too_long(duration, what) from None
        at = part.end()
    if not text:
        raise _unreadable(duration, what)
    return _bounded(total, duration, what)


def positive(duration: Duration, what: str) -> int:
    """A duration that must be longer than nothing, in microseconds."""
    length = microseconds(duration, what)
    if length <= 0:
        raise PlanError(
            f"{what} is {duration!r}, which is not longer than nothing",
            f"{what} must be a positive length of time",
            f'write a positive duration, such as {what}="1 minute"',
        )
    return length


def not_negative(duration: Duration, what: str) -> int:
    """A duration that may be zero but not negative, in microseconds."""
    length = microseconds(duration, what)
    if length < 0:
        raise PlanError(
            f"{what} is {duration!r}, which is negative",
            f"{what} says how long, and there is no time shorter than nothing",
            f'write {what}="0" or a positive duration',
        )
    return length


def words(length: int) -> str:
    """A length in microseconds as words that `microseconds` reads back.

    >>> words(90_000_000)
    '1 minute 30 seconds'
    """
    if length == 0:
        return "0"
    sign, rest, parts = ("-" if length < 0 else ""), abs(length), []
    for name in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        count, rest = divmod(rest, _UNITS[name])
        if count:
            parts.append(f"{sign}{count} {name}{'s' if count != 1 else ''}")
    return " ".join(parts)


def _bounded(length: int, duration: Duration, what: str) -> int:
    if abs(length) > _LONGEST:
        raise _too_long(duration, what)
    return length


def _too_long(duration: Duration, what: str) -> PlanError:
    shown = repr(duration)
    return PlanError(
        f"{what} {shown if len(shown) <= 80 else shown[:40] + '…' + shown[-20:]} is too long",
        "the longest duration is 1,000,000 days",
        f'write a shorter one, such as {what}="1000 days"',
    )


def _no_duration(value: object, what: str) -> PlanError:
    number = isinstance(value, int) and not isinstance(value, bool)
    if number or (isinstance(value, float) and math.isfinite(value)):
        why, sample = "a bare number does not say its unit", f"{value} seconds"
    else:
        why, sample = "a duration is a number and a unit in words, or a timedelta", "5 minutes"
    return PlanError(
        f"{what} is {value!r}, which is not a duration", why, f'write words, such as "{sample}", or a timedelta'
    )


def _unit(word: str, duration: str, what: str) -> int:
    name = _SHORT.get(word) or word.lower().removesuffix("s")
    if name in _UNITS:
        return _UNITS[name]
    raise PlanError(
        f"{what} {duration!r} has the unknown unit {word!r}",
        "a duration is a number and a unit, from microseconds to weeks",
        did_you_mean(word, [f"{unit}s" for unit in _UNITS]),
    )


def _unreadable(duration: str, what: str) -> PlanError:
    return PlanError(
        f"{what} {duration!r} cannot be read",
        "a duration is a number and a unit, from microseconds to weeks",
        'write it as in "5 minutes" or "1 hour 30 minutes"',
    )
