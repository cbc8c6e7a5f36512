"""Where in event time: tumbling, sliding, session and global windows over the same dots."""

from __future__ import annotations

from penstock.humanize import many
from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import scores
from penstock.playground.scene import Figure, Picture, Scene, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND, Batch, Event, Run, batches, play
from penstock.types.timestamps import show

KINDS = {"tumbling": "Tumbling", "sliding": "Sliding", "session": "Session", "global": "Global"}
# How many batches, and how many dots in each: a count is looked at when a batch has ended.
EVEN = {"tens": (3, 10), "sevens": (5, 7)}


def _written(values: Values, kind: str) -> Written:
    size, slide, gap = values["size"], min(values["slide"], values["size"]), values["gap"]
    window = {
        "tumbling": f'ps.tumbling("{size} minutes")',
        "sliding": f'ps.sliding("{size} minutes", every="{slide} minutes")',
        "session": f'ps.session("{gap} seconds")',
        "global": "ps.global_window()",
    }[kind]
    if kind == "global":
        trigger = f"ps.repeat(ps.count({values['count']}))"
        return Written(window=window, trigger=trigger, mode="accumulating")
    return Written(window=window, watermark='ps.bounded("1 minute")')


def _kinds(values: Values) -> list[str]:
    return list(KINDS) if values["kind"] == "all" else [values["kind"]]


def _run(values: Values, kind: str) -> Run:
    return play(_written(values, kind), _batches(values), end=True)


def _batches(values: Values) -> list[Batch]:
    if values["story"] == "made":
        return batches(scores(values["seed"], values["many"], 10), 30 * SECOND, NOON + 12 * MINUTE)
    count, dots = EVEN[values["story"]]
    return [_even(NOON + number * 2 * MINUTE, dots) for number in range(count)]


def _even(begins: int, dots: int) -> Batch:
    """Dots at even distances over two minutes, all read at the end of them."""
    times = (begins + place * 2 * MINUTE // dots for place in range(dots))
    return Batch(begins + 2 * MINUTE, tuple(Event(at, begins + 2 * MINUTE) for at in times))


def scene(values: Values) -> Scene:
    """The kinds that were asked for, each over the same dots."""
    runs = {kind: _run(values, kind) for kind in _kinds(values)}
    steps = next(iter(runs.values())).steps()
    rows = [
        (step, (KINDS[kind], show(pane.window.start), show(pane.window.end), str(pane.values["points"])))
        for kind, run in runs.items()
        for step, outcome in enumerate(run.outcomes)
        for pane in outcome.panes
        if pane.op > 0
    ]
    return Scene(
        steps,
        (
            *(Picture(KINDS[kind], run.plane, run.windows(), variable=f"by_{kind}") for kind, run in runs.items()),
            Table(
                "The windows that were shown",
                ("kind", "from", "to", "points"),
                tuple(sorted(rows, key=lambda row: row[0])),
            ),
        ),
        tuple(
            Figure(
                KINDS[kind],
                many(sum(pane.op > 0 for pane in run.script.panes), "pane"),
                many(len({pane.window for pane in run.script.panes}), "window"),
            )
            for kind, run in runs.items()
        ),
    )


def code(values: Values) -> str:
    """A pipeline for each kind that is shown."""
    return program(*(_written(values, kind).code(f"by_{kind}") for kind in _kinds(values)))


LESSON = Lesson(
    id="windows",
    title="Tumbling, sliding, session, global",
    look=(
        "The dots are the same in every picture; only the rule that puts them into windows differs.",
        "Tumbling windows take each dot once; sliding ones overlap, so a dot counts in several; a session goes on as "
        "long as no pause exceeds the gap, and ends where the data says.",
        "The global window never ends, so a watermark cannot close it: here it is shown every few dots, which are "
        "counted when a batch has ended.",
    ),
    controls=(
        Choice("kind", "windows", (("all", "all four"), *KINDS.items()), "all"),
        Choice(
            "story",
            "dots",
            (
                ("made", "made up by the seed"),
                ("tens", "ten in each of three batches"),
                ("sevens", "seven in each of five batches"),
            ),
            "made",
        ),
        Slider("size", "size", 1, 6, 2, 1, "minutes"),
        Slider("slide", "slides every (sliding)", 1, 6, 1, 1, "minutes"),
        Slider("gap", "gap (session)", 10, 120, 30, 10, "seconds"),
        Slider("count", "shown every (global)", 2, 20, 8, 1, "dots"),
        Slider("many", "events", 10, 60, 26, 2),
        seed(3),
    ),
    presets=(
        Preset("all four", {}),
        Preset("each dot in five windows", {"kind": "sliding", "size": 5, "slide": 1}),
        Preset("one long session", {"kind": "session", "gap": 120}),
        Preset("sessions of a few seconds", {"kind": "session", "gap": 10}),
        Preset("every ten, ten a batch", {"kind": "global", "count": 10, "story": "tens"}),
        Preset("every ten, seven a batch", {"kind": "global", "count": 10, "story": "sevens"}),
    ),
    play=scene,
    code=code,
)
