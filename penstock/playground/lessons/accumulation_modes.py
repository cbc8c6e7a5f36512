"""How results relate: early, on-time and late panes in the three modes, and what a consumer's total becomes."""

from __future__ import annotations

from penstock.humanize import span
from penstock.playground.code_samples import Written, program
from penstock.playground.consumer import added, kept
from penstock.playground.controls import Choice, Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Picture, Rows, Scene, Table
from penstock.playground.simulation import SECOND, Batch, Event, Run, play
from penstock.types.timestamps import show

MODES = ("discarding", "accumulating", "retracting")
EARLY = {
    "never": "",
    "30 seconds": 'ps.every("30 seconds")',
    "1 minute": 'ps.every("1 minute")',
    "count": "ps.count(1)",
}
ADDS = "One that adds takes a withdrawn pane away again; one that replaces keeps the last pane of a window."
END = at("12:04")


def _events(values: Values) -> list[Event]:
    events = [
        Event(at("12:02:24"), at("12:05:10"), points=7),
        Event(at("12:03:39"), at("12:06:10"), points=3),
        Event(at("12:03:50"), at("12:06:20"), points=4),
        Event(at("12:03:06"), at("12:08:00"), points=values["straggler"]),
    ]
    second = Event(at("12:02:50"), at("12:08:40"), points=values["second"])
    return [*events, second] if values["second"] else events


def _written(values: Values, mode: str) -> Written:
    parts = {"early": EARLY[values["early"]], "late": f"ps.count({values['late']})"}
    trigger = ", ".join(f"{name}={text}" for name, text in parts.items() if text)
    return Written(
        watermark="ps.by_hand()",
        window='ps.tumbling("2 minutes")',
        lateness=f"{values['lateness']} minutes" if values["lateness"] else "0",
        trigger=f"ps.at_watermark({trigger})",
        mode=mode,
    )


def _batches(values: Values) -> list[Batch]:
    """Every ten seconds; the watermark reaches the window's end when the control says, then follows the clock."""
    events, passes, cut, now = _events(values), at("12:05") + values["passes"] * SECOND, [], at("12:05")
    while now <= at("12:10"):
        read = tuple(event for event in events if now - 10 * SECOND < event.seen <= now)
        cut.append(Batch(now, read, END + now - passes if now >= passes else at("12:02")))
        now += 10 * SECOND
    return cut


def _rows(runs: dict[str, Run]) -> Rows:
    rows: Rows = []
    for mode, run in runs.items():
        so_far = []
        for step, (batch, outcome) in enumerate(zip(run.batches, run.outcomes, strict=True)):
            for pane in outcome.panes:
                so_far.append(pane)
                said = f"{'−' if pane.op < 0 else '+'}{pane.values['points']} {pane.timing.replace('_', ' ')}"
                last = sum(kept(so_far).values())
                rows.append((step, (show(batch.now), mode, said, str(added(so_far)), str(last))))
    return sorted(rows, key=lambda row: row[0])


def _waited(run: Run) -> str:
    """From the window's first event to the pane that is complete."""
    shown = [one.now for one in run.plane.panes if one.timing == "on_time"]
    first = min(dot.event_time for dot in run.plane.dots if dot.event_time is not None)
    return span(shown[0] - first) if shown else "not yet"


def scene(values: Values) -> Scene:
    """The three modes over the same events."""
    runs = {mode: play(_written(values, mode), _batches(values)) for mode in MODES}
    truth = sum(event.points for event in _events(values))
    counted = sum(int(dot.text) for dot in runs["discarding"].plane.dots if dot.fate == "counted")
    columns = ("at", "mode", "pane", "a consumer that adds", "a consumer that replaces")
    notes = {
        mode: f"adds: {added(run.script.panes)}; replaces: {sum(kept(run.script.panes).values())}"
        for mode, run in runs.items()
    }
    return Scene(
        runs["discarding"].steps(),
        (
            *(Picture(mode, run.plane, run.windows(), note=notes[mode], variable=mode) for mode, run in runs.items()),
            Table("What the consumer has, pane after pane", columns, tuple(_rows(runs)), ADDS),
        ),
        (
            Figure("true total", str(truth)),
            Figure("in the window", str(counted), "the rest is late"),
            *(Figure(mode, str(added(run.script.panes)), "to a consumer that adds") for mode, run in runs.items()),
            Figure("waited", _waited(runs["discarding"]), "from the first event to the on-time pane"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline in each mode."""
    return program(*(_written(values, mode).code(mode) for mode in MODES))


LESSON = Lesson(
    id="modes",
    title="Early, on time, late: three modes",
    look=(
        "One window is shown several times: early guesses, the on-time pane when the watermark reaches its end, and "
        "late corrections.",
        "Discarding panes hold only what is new and add up; each accumulating pane is the whole answer so far; a "
        "retracting one first takes the previous one back.",
        "Compare the consumers: one that adds is wrong with accumulating panes, one that replaces is wrong with "
        "discarding ones.",
    ),
    controls=(
        Choice(
            "early",
            "early panes",
            (
                ("1 minute", "every minute"),
                ("30 seconds", "every 30 seconds"),
                ("count", "with every event"),
                ("never", "none"),
            ),
            "1 minute",
        ),
        Slider("late", "late events for a late pane", 1, 2, 1),
        Slider("passes", "the watermark passes the end after", 30, 240, 90, 10, "seconds"),
        Slider("lateness", "lateness", 0, 4, 4, 1, "minutes"),
        Slider("straggler", "points of the straggler", 1, 20, 8),
        Slider("second", "points of a second one (0: there is none)", 0, 20, 0),
    ),
    presets=(
        Preset("7, then 3 and 4, then 8 late", {}),
        Preset("one pane only", {"early": "never", "lateness": 0}),
        Preset("a pane for every event", {"early": "count"}),
        Preset("wait for all: shown at 12:09", {"early": "never", "passes": 240}),
        Preset("late events in pairs", {"late": 2, "second": 1}),
    ),
    play=scene,
    code=code,
)
