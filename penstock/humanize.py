"""How numbers and times are put into words on a screen: short, and the same everywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.types.timestamps import MAX_TIME, MIN_TIME, to_datetime

MINUTE, HOUR, DAY = 60, 3600, 86_400


def clock(instant: int | None) -> str:
    """A point in time to the second: without the date where it is today's, for a screen is narrow."""
    if instant is None or instant <= MIN_TIME:
        return "none yet"
    if instant >= MAX_TIME:
        return "the end"
    moment = to_datetime(instant)
    if moment is None:
        return str(instant)
    today = moment.date() == datetime.now(UTC).date()
    return moment.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def stamp(instant: int | None) -> str | None:
    """A point in time for machines: ISO 8601 in UTC; none where there is none or it is infinite."""
    moment = None if instant is None else to_datetime(instant)
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def span(microseconds: float) -> str:
    """A length of time, to two or three digits.

    >>> span(950_000), span(5_240_000), span(90_000_000), span(7_500_000_000)
    ('0.95 s', '5.2 s', '1 min 30 s', '2 h 5 min')
    """
    seconds = microseconds / 1_000_000
    if abs(seconds) < 1:
        return f"{seconds:.2f} s"
    if abs(seconds) < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if abs(whole) < MINUTE:
        return f"{whole} s"
    if abs(whole) < HOUR:
        return _two(whole, MINUTE, "min", 1, "s")
    if abs(whole) < DAY:
        return _two(whole, HOUR, "h", MINUTE, "min")
    return _two(whole, DAY, "d", HOUR, "h")


def many(number: int, one: str, more: str | None = None) -> str:
    """A count with its noun.

    >>> many(1, "row"), many(12_000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def size(count: float) -> str:
    """A number of bytes, to two or three digits.

    >>> size(900), size(1_500_000), size(20 * 2**30)
    ('900 B', '1.4 MB', '20 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.1f} {unit}" if unit != "B" and abs(count) < 10 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} TB"


def percent(share: float) -> str:
    """A share of a whole, to two digits where it is small.

    >>> percent(0.623), percent(0.0999999), percent(0.0123), percent(0.0001)
    ('62 %', '10 %', '1.2 %', '0.01 %')
    """
    number = 100 * share
    return (
        f"{number:.0f} %" if number >= 9.95 or not number else f"{number:.1f} %" if number >= 1 else f"{number:.2g} %"
    )


def _two(whole: int, large: int, name: str, small: int, rest: str) -> str:
    first, left = divmod(abs(whole), large)
    sign = "-" if whole < 0 else ""
    return f"{sign}{first} {name}" + (f" {left // small} {rest}" if left // small else "")


_INFINITE = {MIN_TIME: "-inf", MAX_TIME: "+inf"}


def harmless(text: str) -> str:
    """A line without control characters, which a terminal would obey, nor those that turn the direction of writing.

    >>> harmless("red\\x1b[2J")
    'red\\\\x1b[2J'
    """
    # What is no letter and no sign is shown by its number.
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def worded(value: Any) -> Any:
    """Plain values in which the infinite times are words, as in a plane: not every reader of JSON has such integers."""
    if isinstance(value, dict):
        return {name: worded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [worded(one) for one in value]
    return _INFINITE.get(value, value) if type(value) is int else value
