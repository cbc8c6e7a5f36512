"""What was valid then, and what a table says now: an order that comes late, and the rate of its moment."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.events import events
from penstock.api.stream import Rows as Joined, Stream
from penstock.model.watermarks import bounded
from penstock.observability.time_plane import COUNTED, LATE, Dot, Mark, Plane
from penstock.playground.code_samples import program
from penstock.playground.controls import Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import at
from penstock.playground.scene import Figure, Lines, Picture, Rows, Scene, Step, Table
from penstock.playground.simulation import MINUTE
from penstock.testing.script import Script
from penstock.types.timestamps import show

AMOUNT, OLD, NEW = 100, 1.08, 1.10
CHANGE, STRAGGLER = at("10:00"), at("09:59:59")
BEGIN, END = at("09:00"), at("12:00")
COLUMNS = ("order of", "seen", "given", "at the rate of its moment", "by the table as it stood", "right")


@dataclass(frozen=True, slots=True)
class Seen:
    """An order, or a rate from when it is valid."""

    source: str
    at: int
    seen: int
    rate: float = 0.0


def _seen(values: Values) -> list[Seen]:
    orders = [Seen("orders", BEGIN + n * 20 * MINUTE, BEGIN + n * 20 * MINUTE) for n in range(1, 9)]
    late = Seen("orders", STRAGGLER, CHANGE + values["way"] * MINUTE)
    rates = [Seen("rates", BEGIN, BEGIN, OLD), Seen("rates", CHANGE, CHANGE + values["announced"] * MINUTE, NEW)]
    return sorted([*orders, late, *rates], key=lambda one: (one.seen, one.at))


def pipelines(values: Values) -> tuple[Joined, Joined]:
    """Both joins: by the version that was valid then, and by the table as it stands."""
    delay = f"{values['delay']} minutes" if values["delay"] else "0"

    def read(name: str, columns: str, time: str) -> Stream:
        return events(columns, name=name).event_time(time, watermark=bounded(delay))

    orders = read("orders", "currency string, at timestamp, amount double", "at")
    rates = read("rates", "currency string, since timestamp, rate double", "since")
    return orders.temporal_join(rates, on="currency", how="left"), orders.join_table(rates, on="currency", how="left")


def code(values: Values) -> str:
    """The same, as one writes it."""
    delay = f"{values['delay']} minutes" if values["delay"] else "0"
    return program(
        "def read(name, columns, time):\n"
        f'    return ps.events(columns, name=name).event_time(time, watermark=ps.bounded("{delay}"))',
        'orders = read("orders", "currency string, at timestamp, amount double", "at")\n'
        'rates = read("rates", "currency string, since timestamp, rate double", "since")\n'
        'then = orders.temporal_join(rates, on="currency", how="left")\n'
        'now = orders.join_table(rates, on="currency", how="left")',
    )


def _row(one: Seen) -> dict[str, object]:
    if one.source == "rates":
        return {"currency": "EUR", "since": one.at, "rate": one.rate, "@source": "rates"}
    return {"currency": "EUR", "at": one.at, "amount": float(AMOUNT), "@source": "orders"}


@dataclass(frozen=True, slots=True)
class Played:
    """Both joins over the same rows: the picture, and for each order when it was given and at which rate."""

    plane: Plane
    steps: tuple[Step, ...]
    held: tuple[float, ...]
    then: dict[int, tuple[int, float | None]]
    now: dict[int, float | None]


def _played(values: Values) -> Played:
    then, table = (Script(one, "reference") for one in pipelines(values))
    waiting, dots, marks, held, now = _seen(values), [], [], [], BEGIN
    steps: list[Step] = []
    found: dict[int, tuple[int, float | None]] = {}
    stood: dict[int, float | None] = {}
    while now <= END:
        read = [one for one in waiting if one.seen <= now]
        waiting = waiting[len(read) :]
        marks.append(Mark(now, then.W))
        outcome = then.batch([_row(one) for one in read], now=now)
        late = {(one.source, one.row.get("at", one.row.get("since"))) for one in outcome.late}
        dots += [
            Dot(
                one.at,
                now,
                one.source,
                f"{one.rate:.2f}" if one.rate else "",
                one.source,
                LATE if (one.source, one.at) in late else COUNTED,
            )
            for one in read
        ]
        found |= {int(str(one.row["at"])): (len(steps), _rate(one.row["rate"])) for one in outcome.rows}
        given = table.batch([_row(one) for one in read], now=now).rows
        stood |= {int(str(one.row["at"])): _rate(one.row["rate"]) for one in given}
        held.append(float(then.run.open_windows()))
        said = f"{len(read)} read; W {show(marks[-1].watermark)}; {len(outcome.rows)} joined by their moment"
        steps.append(Step(f"{show(now)}: {said}, {len(given)} by the table as it stands", now))
        now += 5 * MINUTE
    return Played(Plane("", tuple(dots), tuple(marks)), tuple(steps), tuple(held), found, stood)


def _rate(given: object) -> float | None:
    return None if given is None else float(str(given))


def _paid(rate: float | None) -> str:
    return "null" if rate is None else f"{AMOUNT * rate:.2f}"


def _marked(said: str, right: str) -> str:
    return said if said in (right, "late", "waits") else f"{said}, wrong"


def scene(values: Values) -> Scene:
    """The orders, each with both answers."""
    run = _played(values)
    orders = [one for one in _seen(values) if one.source == "orders"]
    rows: Rows = []
    wrong = {"then": 0, "now": 0}
    late = [dot.event_time for dot in run.plane.dots if dot.fate == LATE]
    for one in orders:
        right = _paid(NEW if one.at >= CHANGE else OLD)
        step, rate = run.then.get(one.at, (len(run.steps) - 1, None))
        by_moment = _paid(rate) if one.at in run.then else "late" if one.at in late else "waits"
        by_table = _paid(run.now.get(one.at))
        wrong["then"] += one.at in run.then and by_moment != right
        wrong["now"] += by_table != right
        given = show(run.steps[step].now or 0) if one.at in run.then else "–"
        answers = (_marked(by_moment, right), _marked(by_table, right))
        rows.append((step, (show(one.at), show(one.seen), given, *answers, right)))
    return Scene(
        run.steps,
        (
            Picture("Rates (diamonds) and orders of 100 (dots)", run.plane, variable=""),
            Lines("Rows that the temporal join holds", "rows", (("held", run.held),)),
            Table(
                "Each order, and what was paid",
                COLUMNS,
                tuple(sorted(rows)),
                "The table answers at once, with what it has; the temporal join waits for the watermark.",
            ),
        ),
        (
            Figure("wrong by their moment", str(wrong["then"]), "orders of the temporal join"),
            Figure("wrong by the table", str(wrong["now"]), "orders joined with what the table said"),
            Figure("late", str(len(late)), "rows that take part in nothing"),
            Figure("held at most", f"{max(run.held):.0f}", "rows"),
        ),
    )


LESSON = Lesson(
    id="rates",
    title="What was valid then",
    look=(
        "At 10:00 the rate changes from 1.08 to 1.10; an order of 09:59:59 is seen long after that, and the new rate "
        "itself may be announced late.",
        "Joined with the table as it stands, an order gets whatever rate is there when it comes, so the late order is "
        "paid at the wrong one.",
        "The temporal join waits until the watermark has passed an order, and then takes the version of its own "
        "moment: shorten the delay until rows are late.",
    ),
    controls=(
        Slider("way", "the order of 09:59:59 is seen after 10:00 by", 0, 60, 30, 5, "minutes"),
        Slider("announced", "the new rate is seen after 10:00 by", 0, 60, 0, 5, "minutes"),
        Slider("delay", "delay of the watermark", 0, 60, 40, 5, "minutes"),
    ),
    presets=(
        Preset("an order that comes late", {}),
        Preset("a rate that comes late", {"announced": 30}),
        Preset("too little patience", {"announced": 30, "delay": 10}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
