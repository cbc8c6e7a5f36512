"""Scores that are made up by a seed: in disorder as the world is, the same each time."""

from __future__ import annotations

import random

from penstock.playground.simulation import MINUTE, NOON, SECOND, Event


def scores(
    seed: int,
    many: int = 40,
    minutes: int = 12,
    *,
    usual: int = 25,
    stragglers: int = 0,
    straggle: tuple[int, int] = (150, 420),
) -> list[Event]:
    """So many scores of one team: most are seen within twice `usual` seconds, every n-th much later."""
    made = random.Random(seed)
    events = []
    for n in range(many):
        at = NOON + int(made.random() * minutes * 60) * SECOND
        delay = 2 + int(made.random() * made.random() * 2 * usual)
        far = straggle[0] + int(made.random() * (straggle[1] - straggle[0]))
        points = 1 + int(made.random() * 9)
        if stragglers and n % stragglers == stragglers - 1:
            delay = far
        events.append(Event(at, at + delay * SECOND, points=points))
    return sorted(events, key=lambda event: (event.seen, event.at))


def thousand(seed: int, minutes: int = 12) -> list[Event]:
    """A thousand scores: 990 are seen within ten seconds, nine within a minute, and one after an hour."""
    made = random.Random(seed)
    slow = {100 * place + 50: 20 + int(made.random() * 40) for place in range(9)} | {950: 3_600}
    events = []
    for n in range(1_000):
        seen = NOON + n * minutes * 60 // 1_000 * SECOND
        delay = slow.get(n, int(made.random() * made.random() * 10))
        events.append(Event(seen - delay * SECOND, seen, points=1 + int(made.random() * 9)))
    return events


def at(clock: str) -> int:
    """A time of day, as `12:05` or `12:05:30`."""
    hours, minutes, seconds = [*map(int, clock.split(":")), 0][:3]
    return hours * 60 * MINUTE + minutes * MINUTE + seconds * SECOND
