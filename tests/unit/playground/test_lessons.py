"""Does every lesson show what the engine gives, and does every control change what is shown?"""

from __future__ import annotations

import json
from functools import cache

import pytest

from penstock.observability.time_plane import Dot, Plane
from penstock.playground.api import answer, catalogue, played
from penstock.playground.controls import checked
from penstock.playground.lessons import LESSONS
from penstock.testing import Script
from penstock.types.timestamps import parse
from tests.unit.playground.replaying import pipelines, replayed

PRESETS = [(lesson.id, preset.name) for lesson in LESSONS.values() for preset in lesson.presets]
CONTROLS = [(lesson.id, control.name) for lesson in LESSONS.values() for control in lesson.controls]
PLANES = [
    (lesson.id, preset.name)
    for lesson in LESSONS.values()
    for preset in lesson.presets
    if any(panel["kind"] == "plane" and panel["variable"] for panel in lesson.play(
        {**{c.name: c.value for c in lesson.controls}, **preset.values}).plain()["panels"])
]  # fmt: skip


def of(lesson: str, preset: str) -> dict:
    return once(lesson, next(one.values for one in LESSONS[lesson].presets if one.name == preset))


def once(lesson: str, values: dict) -> dict:
    """What a lesson gives, played once for all tests."""
    return _kept(lesson, tuple(checked(LESSONS[lesson].controls, values).items()))


@cache
def _kept(lesson: str, values: tuple) -> dict:
    return played(lesson, dict(values))


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_page_says_in_three_sentences_what_to_look_for(lesson):
    look = LESSONS[lesson].look
    assert len(look) == 3
    assert all(line.endswith(".") and ". " not in line for line in look)


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_first_preset_is_how_the_page_stands_at_first(lesson):
    assert LESSONS[lesson].presets[0].values == {}


@pytest.mark.parametrize(("lesson", "preset"), PRESETS)
def test_every_preset_can_be_played_and_goes_through_json(lesson, preset):
    shown = of(lesson, preset)
    assert json.loads(json.dumps(shown, allow_nan=False))["steps"]
    for panel in shown["panels"]:
        for row in panel.get("rows", ()):
            assert 0 <= row["step"] < len(shown["steps"])
            assert len(row["cells"]) == len(panel["columns"])
        for line in (*panel.get("lines", ()), *panel.get("bars", ())):
            assert len(line["values"]) == len(shown["steps"])
        assert len(panel.get("frames", shown["steps"])) == len(shown["steps"])


@pytest.mark.parametrize(("lesson", "preset"), PRESETS)
def test_the_same_controls_give_the_same_picture(lesson, preset):
    before = of(lesson, preset)
    assert played(lesson, before["values"]) == before


@pytest.mark.parametrize(("lesson", "control"), CONTROLS)
def test_every_control_changes_what_is_shown(lesson, control):
    """From some preset, another value of the control gives another picture; and every choice is worth having."""
    one = next(held for held in LESSONS[lesson].controls if held.name == control)
    for other in one.others():
        assert any(
            _seen(once(lesson, {**preset.values, control: one.value}))
            != _seen(once(lesson, {**preset.values, control: other}))
            for preset in LESSONS[lesson].presets
        ), other


@pytest.mark.parametrize(("lesson", "preset"), PLANES)
def test_what_is_drawn_is_what_the_shown_code_gives(lesson, preset, engine):
    """On the reference, and on the engine of production: panes, watermark and the fate of every dot."""
    shown = of(lesson, preset)
    for panel in shown["panels"]:
        if panel["kind"] == "plane" and panel["variable"]:
            plane = Plane.of(panel["plane"])
            panes, marks, fates = replayed(panel, shown["code"], engine)
            assert sorted(map(repr, panes)) == sorted(map(repr, plane.panes))
            assert marks == [mark.watermark for mark in plane.marks]
            assert fates == [dot.fate for dot in plane.dots]


@pytest.mark.parametrize(("lesson", "preset"), PRESETS)
def test_the_code_that_is_shown_can_be_run(lesson, preset):
    assert "ps" in pipelines(of(lesson, preset)["code"])


def test_the_catalogue_names_every_lesson_once():
    assert [one["id"] for one in catalogue()["lessons"]] == list(LESSONS)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ("{", "cannot be read"),
        ("[1]", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"lesson": "two-clocks", "values": []}', "cannot be read"),
        ('{"lesson": "no-such"}', "there is no lesson"),
        ('{"lesson": "two-clocks", "values": {"dealy": 1}}', "there is no control 'dealy'"),
        ('{"lesson": "two-clocks", "values": {"delay": 31}}', "delay is 31"),
        ('{"lesson": "two-clocks", "values": {"delay": 1.5}}', "delay is 1.5"),
        ('{"lesson": "two-clocks", "values": {"delay": Infinity}}', "delay is inf"),
        ('{"lesson": "two-clocks", "values": {"delay": true}}', "delay is True"),
        ('{"lesson": "two-clocks", "values": {"story": ["x"]}}', "story is ['x']"),
        ('{"lesson": "two-clocks", "values": {"who": "' + "x" * 41 + '"}}', "who is no text"),
    ],
)
def test_what_makes_no_sense_is_told_in_three_parts(asked, what):
    error = json.loads(answer(asked))["error"]
    assert what in error["what"]
    assert error["why"]
    assert error["instead"]


def _seen(shown: dict) -> str:
    return json.dumps([shown["steps"], shown["panels"], shown["figures"]])


@pytest.mark.parametrize("how", ["left", "inner", "full", "semi", "anti"])
def test_the_join_that_is_shown_gives_what_the_shown_code_gives(how, engine):
    shown = played("joins", {"how": how})
    plane, table = Plane.of(shown["panels"][0]["plane"]), shown["panels"][2]["rows"]
    script = Script(pipelines(shown["code"])["joined"], engine)
    times = {"impressions": "at", "clicks": "clicked_at"}
    found = []
    for mark in plane.marks:
        assert script.W == mark.watermark
        dots = [dot for dot in plane.dots if dot.now == mark.now]
        rows = [{"ad": dot.key, times[dot.partition]: dot.event_time, "@source": dot.partition} for dot in dots]
        given = script.batch(rows, now=mark.now).rows
        found += [[str(one.row["ad"]), *(one.row.get(name, "") for name in times.values())] for one in given]
    wanted = [[cells[1], *(_instant(text) for text in cells[2:])] for cells in (row["cells"] for row in table)]
    assert found
    assert found == wanted


@pytest.mark.parametrize("preset", [preset.name for preset in LESSONS["rates"].presets])
def test_what_was_paid_is_what_the_shown_code_gives(preset, engine):
    shown = of("rates", preset)
    plane = Plane.of(shown["panels"][0]["plane"])
    code = pipelines(shown["code"])
    scripts = {name: Script(code[name], engine) for name in ("then", "now")}
    paid: dict[str, dict[int, str]] = {"then": {}, "now": {}}
    for mark in plane.marks:
        rows = [_order_or_rate(dot) for dot in plane.dots if dot.now == mark.now]
        assert scripts["then"].W == mark.watermark
        for name, script in scripts.items():
            for one in script.batch(rows, now=mark.now).rows:
                paid[name][one.row["at"]] = f"{one.row['amount'] * one.row['rate']:.2f}"
    cells = [[text.removesuffix(", wrong") for text in row["cells"]] for row in shown["panels"][2]["rows"]]
    assert {_instant(one[0]): one[3] for one in cells if one[3] not in ("late", "waits")} == paid["then"]
    assert {_instant(one[0]): one[4] for one in cells} == paid["now"]


@pytest.mark.parametrize("preset", [preset.name for preset in LESSONS["patterns"].presets])
def test_the_alerts_that_are_shown_are_what_the_shown_code_gives(preset, engine):
    shown = of("patterns", preset)
    plane = Plane.of(shown["panels"][0]["plane"])
    script = Script(pipelines(shown["code"])["alerts"], engine)
    found = []
    for mark in plane.marks:
        assert script.W == mark.watermark
        rows = [{"user": dot.key, "result": dot.text, "at": dot.event_time} for dot in plane.dots
                if dot.now == mark.now]  # fmt: skip
        given = script.batch(rows, now=mark.now)
        assert [one.row["at"] for one in given.late] == [
            dot.event_time for dot in plane.dots if dot.now == mark.now and dot.fate == "late"
        ]
        found += [[mark.now, one.row["user"], one.row["match_start"], one.row["match_end"], str(one.row["often"])]
                  for one in given.rows]  # fmt: skip
    cells = [row["cells"] for row in shown["panels"][1]["rows"]]
    assert found == [[_instant(one[0]), one[1], _instant(one[2]), _instant(one[3]), one[4]] for one in cells]


def _order_or_rate(dot: Dot) -> dict[str, object]:
    if dot.partition == "rates":
        return {"currency": "EUR", "since": dot.event_time, "rate": float(dot.text), "@source": "rates"}
    return {"currency": "EUR", "at": dot.event_time, "amount": 100.0, "@source": "orders"}


def _instant(text: str) -> int | str | None:
    return None if text == "null" else parse(text) if text else ""
