"""Late, or still corrected: how long to wait and how long to correct are two knobs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Picture, Rows, Scene, Table
from penstock.playground.simulation import SECOND, Batch, Event, Run, answer, named, play
from penstock.types.timestamps import show

OTHERS = tuple((f"14:{m}:00", f"14:{m}:02", "others") for m in range(30, 44))
PHONE = tuple((f"14:32:{n * 60 // 200:02d}", "14:47:00", "phone") for n in range(200))
# Each story: the window's size, and its events as (happened, seen, whose).
STORIES: dict[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {
    "phone": ("1 minute", (*OTHERS, *PHONE)),
    "again": (
        "1 minute",
        (("14:32:20", "14:35:00", "red"), ("14:37:00", "14:38:00", "red"), ("14:32:40", "14:50:00", "red")),
    ),
    "two": (
        "5 minutes",
        (
            ("09:56:00", "09:56:10", "red"),
            ("10:02:00", "10:02:10", "red"),
            ("10:06:30", "10:06:40", "red"),
            ("09:58:00", "10:07:00", "red"),
            ("09:58:30", "10:07:00", "red"),
        ),
    ),
    "edge": (
        "30 seconds",
        (
            ("12:00:10", "12:00:12", "red"),
            ("12:00:49", "12:00:51", "red"),
            ("12:00:50", "12:00:53", "red"),
            ("12:00:29", "12:00:55", "red"),
        ),
    ),
    "together": (
        "30 seconds",
        (
            ("12:00:10", "12:00:12", "red"),
            ("12:00:49", "12:00:51", "red"),
            ("12:00:50", "12:00:53", "red"),
            ("12:00:29", "12:00:53", "red"),
        ),
    ),
    "half": (
        "5 minutes",
        (("10:02:00", "10:02:04", "red"), ("10:05:29", "10:05:31", "red"), ("10:05:30", "10:05:33", "red")),
    ),
}


def _written(values: Values) -> Written:
    return Written(
        watermark=f'ps.bounded("{values["delay"]} seconds")' if values["delay"] else 'ps.bounded("0")',
        window=f'ps.tumbling("{STORIES[values["story"]][0]}")',
        lateness=f"{values['lateness']} minutes" if values["lateness"] else "0",
        mode=values["mode"],
        aggregate={"plays": "ps.rows()"},
    )


def _batches(values: Values) -> list[Batch]:
    """A batch at each moment at which something is seen, and an empty one a second after it, to show what it moved."""
    told = STORIES[values["story"]][1]
    events = [Event(at(happened), at(seen), team) for happened, seen, team in told]
    moments = sorted({event.seen + after for event in events for after in (0, SECOND)})
    return [Batch(now, tuple(event for event in events if event.seen == now)) for now in moments]


def _panes(run: Run) -> Rows:
    return [
        (
            step,
            (
                show(run.batches[step].now),
                f"[{show(pane.window.start)}, {show(pane.window.end)})",
                named(pane),
                answer(pane),
                pane.timing.replace("_", " "),
            ),
        )
        for step, outcome in enumerate(run.outcomes)
        for pane in outcome.panes
    ]


def _late(run: Run) -> Rows:
    """The late rows of each batch, one line for each time they happened, with how many there are."""
    rows: Rows = []
    for step, outcome in enumerate(run.outcomes):
        found: dict[tuple[str, int, int], list[int]] = {}
        for one in outcome.late:
            minute = int(str(one.row["at"])) // (60 * SECOND) * 60 * SECOND
            found.setdefault((str(one.row["team"]), minute, one.watermark), []).append(one.late_by)
        rows += [
            (step, (show(run.batches[step].now), team, show(minute), str(len(much)), show(mark), _seconds(much)))
            for (team, minute, mark), much in found.items()
        ]
    return rows


def _seconds(much: Sequence[int]) -> str:
    least, most = min(much) // SECOND, max(much) // SECOND
    return f"{most:,} s" if least == most else f"{least:,} to {most:,} s"


def scene(values: Values) -> Scene:
    """The run, its panes and its late rows."""
    run = play(_written(values), _batches(values))
    late, panes = len(run.script.late), run.script.panes
    corrected = sum(pane.timing == "late" and pane.op > 0 for pane in panes)
    return Scene(
        run.steps(),
        (
            Picture(f"Windows of {STORIES[values['story']][0]}", run.plane, run.windows()),
            Table("The panes", ("at", "window", "whose", "plays", "timing"), tuple(_panes(run))),
            Table(
                "The late rows",
                ("at", "whose", "happened in", "rows", "W was", "late by"),
                tuple(_late(run)),
                "Late rows are kept in a stream of their own, with the reason; nothing is dropped in silence.",
            ),
        ),
        (
            Figure("late rows", str(late), f"of {len(run.plane.dots)} events"),
            Figure("late panes", str(corrected), "corrections of answers that were out"),
            Figure("windows held at most", str(max(run.held)), "a longer lateness holds more"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline."""
    return program(_written(values).code())


LESSON = Lesson(
    id="lateness",
    title="Late, or still corrected",
    look=(
        "The delay says how long to wait before a window is answered; the lateness says for how long an answer may "
        "still be corrected.",
        "Without lateness an event that comes behind the watermark and finds its window gone is a late row, a cross; "
        "with enough of it the same event makes a late pane.",
        "Turn one knob at a time: a longer delay makes every answer later, a longer lateness makes none later and "
        "holds windows longer.",
    ),
    controls=(
        Choice(
            "story",
            "what happened",
            (
                ("phone", "a phone comes back with 200 events"),
                ("again", "one more event, a quarter of an hour later"),
                ("two", "two events that are five minutes late"),
                ("edge", "to the second: one batch after the edge"),
                ("together", "to the second: in the batch of the edge"),
                ("half", "to the second: what closes a window"),
            ),
            "phone",
        ),
        Slider("delay", "delay of the watermark", 0, 900, 60, 10, "seconds"),
        Slider("lateness", "lateness", 0, 60, 0, 1, "minutes"),
        Choice(
            "mode",
            "mode",
            (("accumulating", "accumulating"), ("discarding", "discarding"), ("retracting", "retracting")),
            "accumulating",
        ),
    ),
    presets=(
        Preset("200 late rows", {}),
        Preset("one late pane with 200", {"lateness": 15}),
        Preset("one more, late", {"story": "again"}),
        Preset("one more, corrected", {"story": "again", "lateness": 30}),
        Preset("two more for 09:55", {"story": "two", "delay": 30, "lateness": 60}),
        Preset("12:00:29 one batch too late", {"story": "edge", "delay": 20}),
        Preset("12:00:29 in time", {"story": "together", "delay": 20}),
        Preset("10:05:30 closes 10:00 to 10:05", {"story": "half", "delay": 30}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
