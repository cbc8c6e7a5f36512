"""A hot key: one key with most of the traffic, and why combining before the shuffle takes its weight away."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate

from penstock.engine.shuffle.partition import shard_of
from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Bars, Figure, Rows, Scene, Step, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND, Batch, Event, play

BATCHES, PER_BATCH, KEYS = 6, 60, 8
WRITTEN = Written(watermark='ps.bounded("5 seconds")', window='ps.tumbling("1 minute")')


def _events(values: Values) -> list[list[Event]]:
    """Batches of events; the first team is the hot one; the partition is the task that reads it."""
    made = random.Random(values["seed"])
    batches = []
    for number in range(BATCHES):
        now = NOON + (number + 1) * 20 * SECOND
        events = []
        for n in range(PER_BATCH):
            hot = made.random() * 100 < values["share"]
            team = "team 0" if hot else f"team {1 + int(made.random() * (KEYS - 1))}"
            at = now - int(made.random() * 4) * SECOND
            events.append(Event(at, now, team, 1 + int(made.random() * 5), str(n % values["tasks"])))
        batches.append(events)
    return batches


def combined(events: list[Event]) -> list[Event]:
    """What leaves the tasks when each adds up its own rows of a key and window first."""
    sums: Counter[tuple[str, str, int]] = Counter()
    first: dict[tuple[str, str, int], Event] = {}
    for event in events:
        place = (event.partition, event.team, event.at // MINUTE)
        sums[place] += event.points
        newest = first.get(place)
        first[place] = event if newest is None or event.at > newest.at else newest
    return [Event(one.at, one.seen, one.team, sums[place], one.partition) for place, one in first.items()]


def _totals(batches: list[list[Event]]) -> Counter[str]:
    cut = [Batch(events[0].seen, tuple(events)) for events in batches]
    found: Counter[str] = Counter()
    for pane in play(WRITTEN, cut, end=True).script.panes:
        found[str(pane.key[0])] += pane.values["points"]  # type: ignore[operator]
    return found


def _received(batches: list[list[Event]], shards: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Rows that each shard has received after each batch."""
    counts = [Counter(shard_of((event.team,), shards) for event in events) for events in batches]
    return tuple(
        (f"shard {shard}", tuple(accumulate(float(count[shard]) for count in counts))) for shard in range(shards)
    )


def scene(values: Values) -> Scene:
    """The rows that each shard receives; the answers of both ways."""
    raw = _events(values)
    packed = [combined(events) for events in raw]
    sent = packed if values["combine"] == "before" else raw
    plain, short = _totals(raw), _totals(packed)
    bars = _received(sent, values["shards"])
    traffic = Counter(event.team for events in raw for event in events)
    last = BATCHES - 1
    rows: Rows = [
        (
            last,
            (
                team,
                f"{100 * many / (BATCHES * PER_BATCH):.0f} %",
                str(shard_of((team,), values["shards"])),
                str(plain[team]),
                str(short[team]),
            ),
        )
        for team, many in traffic.most_common()
    ]
    most, all_of = max(values[-1] for _, values in bars), sum(values[-1] for _, values in bars)
    steps = [
        Step(f"batch {n + 1}: {len(raw[n])} events read, {len(sent[n])} rows over the shuffle") for n in range(BATCHES)
    ]
    return Scene(
        steps,
        (
            Bars("Rows that each shard receives", "rows", bars),
            Table(
                "Each key, and its answer by both ways",
                ("key", "share of events", "shard", "points, rows sent", "points, combined"),
                tuple(rows),
            ),
        ),
        (
            Figure("rows over the shuffle", f"{all_of:.0f}", f"of {BATCHES * PER_BATCH} events"),
            Figure("the busiest shard", f"{most:.0f}", f"{100 * most / all_of:.0f} % of all rows"),
            Figure("answers equal", "yes" if plain == short else "no"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline, in which there is nothing to switch on."""
    why = (
        "# Sums combine, so every task adds up its own rows of a key and window before they\n"
        "# are sent: Penstock always does it so, and there is nothing to switch on.\n"
    )
    return program(why + WRITTEN.code())


LESSON = Lesson(
    id="hot-key",
    title="A hot key",
    look=(
        "All rows of a key meet in one shard, so the shard of a key with most of the traffic has most of the work.",
        "If every task first adds up its own rows of a key and window, the hot key is one row for each task, however "
        "many events it had.",
        "The answers are the same by both ways, because a sum of sums is the sum; a function that does not combine has "
        "no such way out.",
    ),
    controls=(
        Choice(
            "combine", "rows are", (("never", "sent as they come"), ("before", "combined before the shuffle")), "never"
        ),
        Slider("share", "the hot key's share", 0, 95, 80, 5, "%"),
        Slider("tasks", "tasks that read", 1, 8, 4),
        Slider("shards", "shards", 2, 8, 4),
        seed(2),
    ),
    presets=(
        Preset("80 % in one key", {}),
        Preset("combined", {"combine": "before"}),
        Preset("no hot key", {"share": 0}),
    ),
    play=scene,
    code=code,
    model="A model: how rows travel is counted here, not run on Spark. Both answers are the reference engine's, and "
    "the shard of a key is the real one.",
)
