"""When: points in time as microseconds since 1970 in UTC, with both infinities and arithmetic that saturates."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta

MIN_TIME = -(2**63)
MAX_TIME = 2**63 - 1

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LATEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def plus(instant: int, length: int) -> int:
    """An instant moved by a length; the infinities stay where they are and nothing wraps."""
    if instant in (MIN_TIME, MAX_TIME):
        return instant
    return max(MIN_TIME, min(MAX_TIME, instant + length))


def from_datetime(moment: datetime) -> int:
    """A datetime as an instant; a naive one is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: int) -> datetime | None:
    """An instant as an aware datetime in UTC, or None for an infinity."""
    if not EARLIEST <= instant <= LATEST:
        return None
    return EPOCH + timedelta(microseconds=instant)


def parse(text: str | int | datetime) -> int:
    """A point in time as people write it: ISO 8601, a time of day on 1970-01-01, `-inf`, `+inf`, or microseconds.

    >>> parse("12:00") == parse("1970-01-01T12:00:00Z")
    True
    """
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a point in time")
    if isinstance(text, int):
        return text
    if isinstance(text, datetime):
        return from_datetime(text)
    word = text.strip()
    if word in ("+inf", "inf", "-inf"):
        return MIN_TIME if word == "-inf" else MAX_TIME
    clock = _CLOCK.fullmatch(word)
    if clock:
        hour, minute, second, fraction = clock.groups(default="0")
        if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
            raise ValueError(f"{text!r} is not a time of day")
        whole = int(hour) * 3600 + int(minute) * 60 + int(second)
        return whole * 1_000_000 + int(fraction.ljust(6, "0"))
    return from_datetime(datetime.fromisoformat(word))


def event_time_of(value: object, unit: str | None) -> int:
    """The instant that the value of a time column stands for; ValueError says why it stands for none."""
    if value is None:
        raise ValueError("event time is null")
    if isinstance(value, datetime):
        instant = from_datetime(value)
    elif isinstance(value, date):
        instant = from_datetime(datetime(value.year, value.month, value.day, tzinfo=UTC))
    elif isinstance(value, str):
        try:
            instant = from_datetime(datetime.fromisoformat(value.strip()))
        except ValueError:
            raise ValueError(f"event time {value!r} cannot be read") from None
    elif isinstance(value, int) and not isinstance(value, bool):
        instant = value * _UNITS[unit or "us"]
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"event time is {value}")
        instant = round(value * _UNITS[unit or "us"])
    else:
        raise ValueError(f"event time {value!r} is not a time")
    if not EARLIEST <= instant <= LATEST:
        raise ValueError("event time is outside the years 1 to 9999")
    return instant


def show(instant: int) -> str:
    """An instant as text: a time of day on 1970-01-01, else date and time; microseconds only where there are any."""
    if instant <= MIN_TIME:
        return "-inf"
    if instant >= MAX_TIME:
        return "+inf"
    moment = to_datetime(instant)
    if moment is None:
        return str(instant)
    clock = moment.strftime("%H:%M:%S") + (f".{moment.microsecond:06d}" if moment.microsecond else "")
    return clock if moment.date() == date(1970, 1, 1) else f"{moment.date().isoformat()} {clock}"
