"""Events that follow one another: three failed logins in a row, found in order of event time."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.events import events
from penstock.api.stream import Rows as Matches
from penstock.model.watermarks import bounded
from penstock.observability.time_plane import COUNTED, LATE, Dot, Mark, Plane
from penstock.plan.operators.pattern import Skip, no_skip, past_last, pattern
from penstock.playground.code_samples import program
from penstock.playground.controls import Choice, Slider, Values, Word
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Figure, Lines, Picture, Rows, Scene, Step, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND
from penstock.testing.script import Script
from penstock.types.timestamps import show

COLUMNS = "user string, result string, at timestamp"
FAILED, WAY = "result = 'F'", 5 * SECOND
SKIP: dict[str, tuple[str, Skip]] = {
    "past_last": ("ps.past_last()", past_last()),
    "no_skip": ("ps.no_skip()", no_skip()),
}


@dataclass(frozen=True, slots=True)
class Login:
    """Who tried, when, when that was seen, and how it went."""

    user: str
    at: int
    seen: int
    result: str


def _logins(values: Values) -> list[Login]:
    """A login a minute, of which the second is slow on its way; then one of another user, to move the watermark on."""
    found = []
    for place, result in enumerate(values["logins"]):
        tried, slow = NOON + place * MINUTE, values["slow"] * SECOND if place == 1 else 0
        found.append(Login("ann", tried, tried + WAY + slow, result))
    after = max((one.seen for one in found), default=NOON) + values["delay"] * SECOND
    return sorted([*found, Login("bob", after, after + WAY, "S")], key=lambda one: one.seen)


def pipeline(values: Values) -> Matches:
    """The pattern."""
    logins = events(COLUMNS, name="logins").event_time("at", watermark=bounded(_delay(values))).key_by("user")
    row = pattern("failed", FAILED).times(values["often"]).consecutive().within(f"{values['within']} minutes")
    return logins.match(row, output={"often": "count(failed)"}, skip=SKIP[values["skip"]][1])


def code(values: Values) -> str:
    """The same, as one writes it."""
    return program(
        f'logins = ps.events("{COLUMNS}", name="logins")\n'
        f'timed = logins.event_time("at", watermark=ps.bounded("{_delay(values)}"))',
        f'row = ps.pattern("failed", "{FAILED}").times({values["often"]}).consecutive()\n'
        'alerts = timed.key_by("user").match(\n'
        f'    row.within("{values["within"]} minutes"),\n'
        '    output={"often": "count(failed)"},\n'
        f"    skip={SKIP[values['skip']][0]},\n)",
    )


def _delay(values: Values) -> str:
    return f"{values['delay']} seconds" if values["delay"] else "0"


def scene(values: Values) -> Scene:
    """The logins, the alerts, and what is held for them."""
    script, waiting = Script(pipeline(values), "reference"), _logins(values)
    dots, marks, held, now, last = [], [], [], NOON, waiting[-1].seen + MINUTE
    steps: list[Step] = []
    alerts: Rows = []
    while now <= last:
        read = [one for one in waiting if one.seen <= now]
        waiting = waiting[len(read) :]
        marks.append(Mark(now, script.W))
        outcome = script.batch([{"user": one.user, "result": one.result, "at": one.at} for one in read], now=now)
        late = {(one.row["user"], one.row["at"]) for one in outcome.late}
        dots += [
            Dot(one.at, now, one.user, one.result, "0", LATE if (one.user, one.at) in late else COUNTED) for one in read
        ]
        alerts += [(len(steps), _alert(dict(one.row), now)) for one in outcome.rows]
        held.append(script.run.open_windows())
        said = f"{len(read)} read; W {show(marks[-1].watermark)}; {len(outcome.rows)} given; {held[-1]} held"
        if values["crash"] == "each":
            script.restart()
            said += "; killed, and begun again"
        steps.append(Step(f"{show(now)}: {said}", now))
        now += 15 * SECOND
    failed = sum(dot.text == "F" for dot in dots)
    return Scene(
        steps,
        (
            Picture("Logins, by when they were tried", Plane("", tuple(dots), tuple(marks)), variable=""),
            Table(
                "Alerts",
                ("given at", "user", "from", "to", "failed"),
                tuple(alerts),
                "An alert is given once the watermark has passed its last login: until then an older one may come.",
            ),
            Lines("Logins that wait, and rows that have begun", "in all", (("held", tuple(map(float, held))),)),
        ),
        (
            Figure("alerts", str(len(alerts))),
            Figure("failed", str(failed), f"of {len(dots)} logins"),
            Figure("late", str(len(script.late)), "logins that take part in nothing"),
        ),
    )


def _alert(row: dict[str, object], now: int) -> tuple[str, ...]:
    ends = (show(int(str(row[name]))) for name in ("match_start", "match_end"))
    return (show(now), str(row["user"]), *ends, str(row["often"]))


LESSON = Lesson(
    id="patterns",
    title="Three failed logins in a row",
    look=(
        "A pattern looks for events of a key that follow one another: here for failed logins, F, without a success, S, "
        "between them.",
        "They are put in order by when they were tried, so each waits until the watermark has passed it; one that "
        "comes behind the line is late, and the row is seen without it.",
        "Write other logins, and see where the search goes on after an alert: past its last login, or with the very "
        "next one, which may be a part of several.",
    ),
    controls=(
        Word("logins", "logins, one a minute (F: failed)", "FFF"),
        Slider("often", "failed ones for an alert", 2, 6, 3),
        Choice(
            "skip",
            "after an alert go on",
            (
                ("past_last", "past its last login"),
                ("no_skip", "with the next login"),
            ),
            "past_last",
        ),
        Slider("within", "all within less than", 1, 10, 10, 1, "minutes"),
        Slider("slow", "the second is longer on its way by", 0, 180, 0, 10, "seconds"),
        Slider("delay", "delay of the watermark", 0, 180, 60, 10, "seconds"),
        Choice("crash", "the worker is killed", (("never", "never"), ("each", "after every batch")), "never"),
    ),
    presets=(
        Preset("FFF: one alert", {}),
        Preset("FFSFF: none", {"logins": "FFSFF"}),
        Preset("FFFF: one", {"logins": "FFFF"}),
        Preset("FFFFFF: two", {"logins": "FFFFFF"}),
        Preset("two, whatever is killed", {"logins": "FFFFFF", "crash": "each"}),
        Preset("one came too late", {"slow": 100, "delay": 0}),
        Preset("it is waited for", {"slow": 100, "delay": 120}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
