"""Sessions: a straggler that fuses two of them, after both have been shown."""

from __future__ import annotations

from penstock.playground.code_samples import Written, program
from penstock.playground.consumer import kept
from penstock.playground.controls import Choice, Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Picture, Rows, Scene, Table
from penstock.playground.simulation import MINUTE, Batch, Event, Run, play
from penstock.types.timestamps import show

BEGIN, FIRST, SECOND, SEEN = at("12:10"), at("12:10"), at("12:25"), at("13:00")


def _written(values: Values) -> Written:
    return Written(
        watermark="ps.by_hand()",
        window=f'ps.session("{values["gap"]} minutes")',
        lateness=f"{values['lateness']} minutes" if values["lateness"] else "0",
        trigger="ps.at_watermark(late=ps.count(1))",
        mode=values["mode"],
        aggregate={"plays": "ps.rows()"},
    )


def _batches(values: Values) -> list[Batch]:
    events = [
        Event(FIRST, FIRST + MINUTE),
        Event(SECOND, SECOND + MINUTE),
        Event(FIRST + values["straggler"] * MINUTE, SEEN),
    ]
    moments = [BEGIN + n * 2 * MINUTE for n in range(31)]
    return [
        Batch(now, tuple(one for one in events if now - 2 * MINUTE < one.seen <= now), now - 5 * MINUTE)
        for now in moments
    ]


def _sink(run: Run) -> Rows:
    """The table after each batch that changed it."""
    rows: Rows = []
    before = ""
    for step in range(len(run.batches)):
        table = kept([pane for outcome in run.outcomes[: step + 1] for pane in outcome.panes], "plays")
        said = "; ".join(f"[{show(start)}, {show(end)}] {plays}" for (_, start, end), plays in sorted(table.items()))
        if said != before:
            rows.append((step, (show(run.batches[step].now), said or "empty", str(len(table)))))
            before = said
    return rows


def scene(values: Values) -> Scene:
    """The sessions, and the table of an upsert sink."""
    run = play(_written(values), _batches(values))
    table = kept(run.script.panes, "plays")
    withdrawn = sum(pane.op < 0 for pane in run.script.panes)
    sink = "An upsert sink takes no discarding panes: this is what would be in it."
    return Scene(
        run.steps(),
        (
            Picture("Sessions of one team", run.plane, run.windows()),
            Table(
                "The rows of an upsert sink",
                ("since", "rows", "how many"),
                tuple(_sink(run)),
                sink if values["mode"] == "discarding" else "",
            ),
        ),
        (
            Figure("sessions in the end", str(len(table))),
            Figure("withdrawn panes", str(withdrawn)),
            Figure("late", str(len(run.script.late)), "events that no session takes"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline."""
    return program(_written(values).code())


LESSON = Lesson(
    id="sessions",
    title="A straggler that fuses two sessions",
    look=(
        "Events far apart make two sessions, and both are shown when the watermark has passed them.",
        "Then an event from between them comes: if it is within the gap of both, the two were one session all along, "
        "so both panes are withdrawn and one takes their place.",
        "Move the straggler and the gap: it may join one of them, both, or neither, and without lateness it finds them "
        "gone.",
    ),
    controls=(
        Slider("gap", "gap", 3, 20, 12, 1, "minutes"),
        Slider("straggler", "the straggler happened after 12:10 by", 0, 40, 5, 1, "minutes"),
        Slider("lateness", "lateness", 0, 60, 60, 5, "minutes"),
        Choice(
            "mode",
            "mode",
            (("retracting", "retracting"), ("accumulating", "accumulating"), ("discarding", "discarding")),
            "retracting",
        ),
    ),
    presets=(
        Preset("12:15 fuses 12:10 and 12:25", {}),
        Preset("exactly one gap", {"gap": 10}),
        Preset("joins the first alone", {"straggler": 2}),
        Preset("at 12:10 as well: only corrected", {"straggler": 0}),
        Preset("too short a gap", {"gap": 4}),
        Preset("no lateness", {"lateness": 0}),
    ),
    play=scene,
    code=code,
)
