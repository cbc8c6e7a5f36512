"""The two clocks: when it happened and when it was seen, and the bucket that is wrong."""

from __future__ import annotations

from collections import Counter

from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, Word
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Picture, Scene, Table
from penstock.playground.simulation import MINUTE, SECOND, Batch, Event, Run, play
from penstock.types.timestamps import show

HOURLY = (("09:00:00", "09:43:12"), ("09:55:00", "10:05:00"))
STORIES: dict[str, tuple[tuple[str, str], ...]] = {
    "purchases": HOURLY,
    "crossed": (("12:05:00", "12:06:00"), ("12:01:00", "12:08:00")),
    "midday": (("11:59:00", "12:01:00"),),
    "tunnel": (
        *((f"14:{m}:00", f"14:{m}:05") for m in (30, 33, 36, 39, 42)),
        *((f"14:32:{n * 60 // 200:02d}", "14:47:00") for n in range(200)),
    ),
    "slow": (("10:00:00", "10:08:00"), ("10:06:00", "10:08:00")),
}


def _events(values: Values) -> list[Event]:
    delay = values["delay"] * MINUTE
    name = values["who"]
    return [Event(at(happened), at(seen) + delay, name) for happened, seen in STORIES[values["story"]]]


def _written(values: Values, time: str) -> Written:
    size = f'ps.tumbling("{values["size"]}")'
    return Written(window=size, time=time, aggregate={"plays": "ps.rows()"}, watermark='ps.bounded("1 hour")')


def _run(values: Values, time: str) -> Run:
    events = sorted(_events(values), key=lambda event: event.seen)
    moments = sorted({event.seen for event in events})
    cut = [Batch(moment, tuple(event for event in events if event.seen == moment)) for moment in moments]
    return play(_written(values, time), cut, end=True)


def _buckets(run: Run) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for pane in run.script.panes:
        found[pane.window.start, pane.window.end] += pane.values["plays"]  # type: ignore[operator]
    return found


def scene(values: Values) -> Scene:
    """Both runs over the same events, and their buckets beside one another."""
    event, processing = _run(values, "event"), _run(values, "processing")
    right, wrong = _buckets(event), _buckets(processing)
    last = len(event.steps()) - 1
    rows = tuple(
        (last, (f"{show(start)} – {show(end)}", str(right[start, end]), str(wrong[start, end])))
        for start, end in sorted({*right, *wrong})
    )
    events = _events(values)
    moved = sum(max(right[one] - wrong[one], 0) for one in right)
    skews = [(one.seen - one.at) // SECOND for one in events]
    return Scene(
        event.steps(),
        (
            Picture("By event time: columns", event.plane, event.windows(), variable="right", line=False),
            Picture(
                "By processing time: bands", processing.plane, tuple(sorted(wrong)), "processing", variable="wrong"
            ),
            Table("How many in each bucket", ("bucket", "by event time", "by processing time"), rows),
        ),
        (
            Figure("in the wrong bucket", f"{moved} of {len(events)}", "by processing time"),
            Figure("largest skew", f"{max(skews):,} s", "seen less happened"),
        ),
    )


def code(values: Values) -> str:
    """Both pipelines."""
    return program(
        "# by when it happened\n" + _written(values, "event").code("right"),
        "# by when it was seen\n" + _written(values, "processing").code("wrong"),
    )


LESSON = Lesson(
    id="two-clocks",
    title="Two clocks, and the wrong bucket",
    look=(
        "Every dot has two times: across, when it happened; up, when it was seen; on the dotted line they are equal.",
        "Event-time windows are columns and take each dot where it happened; processing-time windows are bands and "
        "take it when it was seen.",
        "Make the way longer: the columns count the same as before, while dots climb into other bands.",
    ),
    controls=(
        Choice(
            "story",
            "what happened",
            (
                ("purchases", "two purchases, one seen late"),
                ("crossed", "two events that overtake one another"),
                ("midday", "one event across the full hour"),
                ("tunnel", "a phone in a tunnel, with 200 events"),
                ("slow", "eight minutes on the way"),
            ),
            "purchases",
        ),
        Slider("delay", "longer way", 0, 30, 0, 1, "minutes"),
        Choice(
            "size", "windows of", (("1 hour", "1 hour"), ("5 minutes", "5 minutes"), ("1 minute", "1 minute")), "1 hour"
        ),
        Word("who", "whose", "red"),
    ),
    presets=(
        Preset("purchases by the hour", {}),
        Preset("overtaken, five minutes", {"story": "crossed", "size": "5 minutes"}),
        Preset("11:59 seen at 12:01", {"story": "midday"}),
        Preset("200 events out of the tunnel", {"story": "tunnel", "size": "1 minute"}),
        Preset("eight minutes on the way", {"story": "slow", "size": "5 minutes"}),
    ),
    play=scene,
    code=code,
)
