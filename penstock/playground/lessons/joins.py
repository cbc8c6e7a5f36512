"""Two streams that meet: what a join gives, and what it must hold until the watermark rules a partner out."""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.api.events import events
from penstock.api.stream import Rows as Joined, Stream
from penstock.model.watermarks import bounded
from penstock.observability.time_plane import COUNTED, LATE, Dot, Mark, Plane
from penstock.playground.code_samples import program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Lines, Picture, Rows, Scene, Step, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND
from penstock.testing.script import Script
from penstock.types.timestamps import show

MINUTES = 14
# One impression, clicks around the edges of its range, an impression that nobody clicks on, and a pair that moves W.
EDGES = (
    ("clicks", "ad 1", "09:59:00"),
    ("impressions", "ad 1", "10:00:00"),
    ("clicks", "ad 1", "10:03:00"),
    ("clicks", "ad 1", "10:05:00"),
    ("clicks", "ad 1", "10:05:01"),
    ("impressions", "ad 2", "10:20:00"),
    ("impressions", "ad 3", "10:32:00"),
    ("clicks", "ad 3", "10:33:00"),
)
TIMES = {"impressions": "at", "clicks": "clicked_at"}


@dataclass(frozen=True, slots=True)
class Seen:
    """An impression or a click: of which advertisement, when, and when it was seen."""

    source: str
    ad: str
    at: int
    seen: int


def _seen(values: Values) -> list[Seen]:
    if values["story"] == "edges":
        return [Seen(source, ad, at(when), at(when) + 5 * SECOND) for source, ad, when in EDGES]
    made, found = random.Random(values["seed"]), []
    for number in range(10):
        shown = NOON + number * MINUTE + int(made.random() * 40) * SECOND
        ad = f"ad {number + 1}"
        found.append(Seen("impressions", ad, shown, shown + int(made.random() * 8) * SECOND))
        after = int((made.random() * 1.4 - 0.1) * 6 * 60) * SECOND
        if made.random() * 100 < values["clicked"]:
            found.append(Seen("clicks", ad, shown + after, shown + after + int(made.random() * 12) * SECOND))
    found.append(Seen("clicks", "ad 99", NOON + 3 * MINUTE, NOON + 3 * MINUTE + SECOND))
    found.append(Seen("clicks", "ad 12", NOON + MINUTES * MINUTE, NOON + MINUTES * MINUTE))
    found.append(Seen("impressions", "ad 11", NOON + MINUTES * MINUTE, NOON + MINUTES * MINUTE))
    return sorted(found, key=lambda one: (one.seen, one.at))


def pipeline(values: Values) -> Joined:
    """The join."""
    delay = f"{values['delay']} seconds" if values["delay"] else "0"

    def read(name: str, columns: str, time: str) -> Stream:
        return events(columns, name=name).event_time(time, watermark=bounded(delay))

    impressions = read("impressions", "ad string, at timestamp", "at")
    clicks = read("clicks", "ad string, clicked_at timestamp", "clicked_at")
    return impressions.join(clicks, on="ad", between=("0", f"{values['within']} minutes"), how=values["how"])


def code(values: Values) -> str:
    """The same, as one writes it."""
    delay = f"{values['delay']} seconds" if values["delay"] else "0"
    return program(
        "def read(name, columns, time):\n"
        f'    return ps.events(columns, name=name).event_time(time, watermark=ps.bounded("{delay}"))',
        'impressions = read("impressions", "ad string, at timestamp", "at")\n'
        'clicks = read("clicks", "ad string, clicked_at timestamp", "clicked_at")\n'
        "joined = impressions.join(\n"
        f'    clicks, on="ad", between=("0", "{values["within"]} minutes"), how="{values["how"]}"\n)',
    )


def _row(one: Seen) -> dict[str, object]:
    return {"ad": one.ad, TIMES[one.source]: one.at, "@source": one.source}


def _given(row: dict[str, object], now: int) -> tuple[str, ...]:
    times = [row.get(name, "") for name in ("at", "clicked_at")]
    said = ["null" if time is None else show(int(str(time))) if time else "" for time in times]
    return (show(now), str(row["ad"]), *said)


def scene(values: Values) -> Scene:
    """The rows that are given, and how many are held for it."""
    script, waiting = Script(pipeline(values), "reference"), _seen(values)
    begins, ends, every = (NOON, NOON + (MINUTES + 1) * MINUTE, 15 * SECOND)
    if values["story"] == "edges":
        begins, ends, every = at("09:58"), at("10:35"), 30 * SECOND
    dots, marks, held, now = [], [], [], begins
    steps: list[Step] = []
    rows: Rows = []
    while now <= ends:
        read = [one for one in waiting if one.seen <= now]
        waiting = waiting[len(read) :]
        marks.append(Mark(now, script.W))
        outcome = script.batch([_row(one) for one in read], now=now)
        late = {(row.source, row.row["ad"], row.row[TIMES[row.source]]) for row in outcome.late}
        dots += [
            Dot(
                one.at,
                now,
                one.ad,
                one.ad.removeprefix("ad "),
                one.source,
                LATE if (one.source, one.ad, one.at) in late else COUNTED,
            )
            for one in read
        ]
        rows += [(len(steps), _given(dict(given.row), now)) for given in outcome.rows]
        held.append(script.run.open_windows())
        said = f"{len(read)} read; W {show(marks[-1].watermark)}; {len(outcome.rows)} given; {held[-1]} held"
        steps.append(Step(f"{show(now)}: {said}", now))
        now += every
    plane = Plane("", tuple(dots), tuple(marks))
    alone = sum("null" in cells for _, cells in rows)
    return Scene(
        steps,
        (
            Picture("Impressions (diamonds) and clicks (dots)", plane, variable=""),
            Lines("Rows that the join holds", "rows", (("held", tuple(map(float, held))),)),
            Table("Rows that the join gives", ("given at", "ad", "shown at", "clicked at"), tuple(rows)),
        ),
        (
            Figure("given", str(len(rows)), f"{alone} of them padded with null"),
            Figure("held at most", str(max(held)), "rows of both sides"),
            Figure("late", str(len(script.late)), "rows that take part in nothing"),
        ),
    )


LESSON = Lesson(
    id="joins",
    title="Joins, and what they hold",
    look=(
        "An impression meets the clicks of its advertisement within some minutes after it; a pair is given as soon as "
        "its second half is there.",
        "Until then the rows are held, and the watermark says for how long: once it has passed the last moment at "
        "which a partner could come, a row leaves, and a left join pads it with null.",
        "Watch the rows held: a wider range or a longer delay holds more of them, and an inner join gives nothing for "
        "those that waited in vain.",
    ),
    controls=(
        Choice(
            "how",
            "kind of join",
            (
                ("left", "left: every impression"),
                ("inner", "inner: pairs alone"),
                ("full", "full: both sides"),
                ("semi", "semi: impressions that were clicked"),
                ("anti", "anti: those that were not"),
            ),
            "left",
        ),
        Slider("within", "clicks within", 1, 8, 4, 1, "minutes"),
        Choice("story", "what happened", (("made", "made up by the seed"), ("edges", "clicks at the edges")), "made"),
        Slider("delay", "delay of the watermark", 0, 180, 30, 10, "seconds"),
        Slider("clicked", "impressions with a click", 10, 100, 70, 10, "%"),
        seed(4),
    ),
    presets=(
        Preset("left, four minutes", {}),
        Preset("inner", {"how": "inner"}),
        Preset("10:00, and clicks at the edges", {"story": "edges", "within": 5}),
        Preset("who was not clicked on", {"how": "anti"}),
        Preset("a wide range", {"within": 8, "delay": 120}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
