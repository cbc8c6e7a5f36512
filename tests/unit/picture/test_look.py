"""Is a picture fit to be read: the edges of time, hostile text, thousands of events, many keys, light and dark?"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.errors import PenstockError
from penstock.observability.time_plane import LATE, QUARANTINED, Dot, Mark, Plane, Shown
from penstock.picture import Look, of_case, svg
from penstock.testing.cases import Case, read
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse, show
from tests.unit.picture.reading import Picture

TESTS = Path(__file__).parents[2]
FILES = (
    "conformance/book/streaming_systems",
    "conformance/book/accumulation_tables",
    "conformance/transcripts/beam",
    "conformance/examples/worked",
)
CASES = [case for name in FILES for case in read(TESTS / f"{name}.toml")]
BOOK = [case for case in CASES if case.suite == "streaming systems"]


def test_infinities_lie_at_the_edges() -> None:
    minute = 60_000_000
    plane = Plane(
        "",
        (Dot(parse("12:00"), parse("12:01"), "", "1"), Dot(None, parse("12:02"), "", "2", fate=QUARANTINED)),
        (Mark(parse("12:01"), MIN_TIME), Mark(parse("12:03"), MAX_TIME)),
        (Shown("", MIN_TIME, MAX_TIME, parse("12:03"), 0, "on_time", "3"),
         Shown("", parse("12:00"), MAX_TIME, parse("12:03") + minute, 0, "on_time", "4")),
    )  # fmt: skip
    picture = Picture(svg(plane))
    left, _, right, _ = picture.frame
    assert [picture.line()[0][0], picture.line()[-1][0]] == pytest.approx([left, right], abs=0.3)
    (start, end, _), (_, open_end, _) = picture.tops()
    assert [start, end, open_end] == pytest.approx([left, right, right], abs=0.3)
    diamond = picture.of("plane")[0].findall(".//*[@class='diamond']")[0].get("d")
    assert float(diamond[1:].split()[0]) == pytest.approx(left, abs=0.3)


def test_an_event_far_off_does_not_make_the_rest_small() -> None:
    near = [Dot(parse("12:00") + n * 1_000_000, parse("12:01"), "", str(n)) for n in range(60)]
    far = Dot(parse("2026-05-01T12:00"), parse("12:01"), "", "far", fate=QUARANTINED, why="ahead")
    picture = Picture(svg(Plane("", (*near, far))))
    xs = [x for x, _ in picture.dots()]
    left, _, right, _ = picture.frame
    assert max(xs) - min(xs) > 0.8 * (right - left)
    assert "→ far" in picture.texts("value")


def test_hostile_text_stays_text() -> None:
    evil = "</text><script>alert(1)</script>\x00\ud800\u202e\"'&<!--]]>"
    plane = Plane(
        evil,
        (Dot(0, 1, evil, evil), Dot(None, 2, evil, evil, evil, QUARANTINED, evil),
         Dot(3, 2, evil, evil, "", LATE, evil), Dot(4, 2, evil, evil, "", 'x" onload="alert(1)', evil)),
        (Mark(0, 0),),
        (Shown(evil, 0, 10, 5, 0, evil, evil), Shown(evil, 0, 10, 6, 1, 'x" onload="alert(1)', evil, op=-1)),
    )  # fmt: skip
    for look in (Look(), Look(400, "dark")):
        drawn = svg(plane, look)
        drawn.encode("utf-8")
        root = ElementTree.fromstring(drawn)
        names = {one.tag.partition("}")[2] for one in root.iter()}
        assert names <= {"svg", "title", "desc", "style", "defs", "pattern", "g", "rect", "path", "line", "circle",
                         "text", "tspan"}  # fmt: skip
        assert not [name for one in root.iter() for name in one.attrib if name.startswith("on") or "href" in name]
        assert "script" not in root.find("{http://www.w3.org/2000/svg}style").text
        assert "</text><script>" in "".join(root.itertext())
        assert "\u202e" not in drawn


def test_an_empty_run_says_so() -> None:
    picture = Picture(svg(Plane("nothing")))
    assert "Nothing to draw: no event, no watermark and no pane was seen." in picture.texts("faint")
    assert picture.of("frame") == []


@pytest.mark.parametrize("plane", [
    Plane("", (Dot(0, 0),)), Plane("", (), (Mark(0, MIN_TIME),)),
    Plane("", (), (), (Shown("", 0, 1, 0, 0, "early", "1"),)),
    Plane("", (Dot(None, 0, fate=QUARANTINED),)), Plane("", (Dot(MAX_TIME, 0), Dot(MIN_TIME, 0))),
    Plane("", (Dot(-(2**62), 0), Dot(2**62, 2**62))),
])  # fmt: skip
def test_the_smallest_and_the_largest_planes_can_be_drawn(plane: Plane) -> None:
    picture = Picture(svg(plane))
    left, top, right, bottom = picture.frame
    assert right > left
    assert bottom > top


@pytest.mark.parametrize("case", [case for case in CASES if case.refused is None], ids=lambda case: case.name)
def test_every_case_has_a_picture_and_no_label_is_cut_or_lies_on_another(case: Case) -> None:
    picture = Picture(svg(of_case(case)))
    boxes = []
    for chip in picture.of("label"):
        box = picture.of("chip", inside=chip)[0]
        if box.get("width"):
            boxes.append(tuple(float(box.get(name)) for name in ("x", "y", "width", "height")))
    for number, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert x + width <= 600
        for left, top, other, tall in boxes[:number]:
            assert x + width <= left or left + other <= x or y + height <= top or top + tall <= y


def test_thousands_are_thinned_and_it_says_how_many_are_not_there() -> None:
    dots = tuple(Dot(n * 1_000, n * 1_300 + n * n % 7_001, "k", str(n)) for n in range(50_000))
    odd = Dot(25_000_000, 90_000_000, "k", "odd", fate=LATE, why="much too late")
    panes = tuple(Shown("k", n * 10_000, n * 10_000 + 10_000, n * 13_000, 0, "early", str(n)) for n in range(5_000))
    drawn = svg(Plane("busy", (*dots, odd), (Mark(0, 0), Mark(60_000_000, 50_000_000)), panes))
    picture = Picture(drawn)
    notes = picture.texts("note")
    shown = len(picture.dots())
    assert 100 < shown <= 600
    assert len(picture.of("cross")) == 2
    assert len(picture.of("pane")) <= 300
    assert f"Too many to draw them all: {5_000 - len(picture.of('pane')):,} panes are left out." in notes
    assert any(
        note.startswith("Too many to draw them all: 49,") and note.endswith("events are left out.") for note in notes
    )
    assert len(drawn) < 300_000


def test_a_watermark_that_moved_a_hundred_thousand_times_is_a_short_line() -> None:
    marks = tuple(Mark(n * 1_000, n * 1_000 - 5_000_000) for n in range(100_000))
    picture = Picture(svg(Plane("long", (Dot(0, 0), Dot(99_999_000, 99_999_000)), marks)))
    first, last = picture.line()[0], picture.line()[-1]
    assert len(picture.line()) < 3_000
    assert last == pytest.approx((picture.across.at(94_999_000), picture.up.at(99_999_000)), abs=0.3)
    assert first[0] < last[0]


def test_each_key_has_a_plane_of_its_own_on_the_same_scales() -> None:
    dots = tuple(Dot(n * 1_000_000, n * 1_000_000, f"key {n % 12}", str(n)) for n in range(24))
    picture = Picture(svg(Plane("keys", dots)))
    assert picture.texts("key") == [f"key {n}" for n in range(8)]
    assert "4 more keys are not drawn; choose one with --key." in picture.texts("note")
    alone = Picture(svg(Plane("keys", dots), key="key 11"))
    assert alone.texts("key") == ["key 11"]
    assert alone.texts("value") == ["11", "23"]
    with pytest.raises(PenstockError, match="no event and no pane has the key 'kye 1'") as refused:
        svg(Plane("keys", dots), key="kye 1")
    assert "did you mean 'key 1'" in refused.value.instead


def test_overlapping_windows_lie_in_rows() -> None:
    panes = tuple(Shown("", start, start + 120_000_000, 300_000_000, 0, "on_time", str(start // 60_000_000))
                  for start in range(0, 300_000_000, 60_000_000))  # fmt: skip
    picture = Picture(svg(Plane("sliding", (Dot(0, 0),), (), panes)))
    assert len({one.get("d").split()[1].partition("v")[0] for one in picture.of("bracket")}) == 2
    assert len(picture.of("bracket")) == 5
    assert sorted(chip.split()[0] for chip in picture.chips()) == ["0", "1", "2", "3", "4"]


def test_light_and_dark() -> None:
    plane = Plane("x", (Dot(0, 0),))
    auto, light, dark = (svg(plane, Look(600, scheme)) for scheme in ("auto", "light", "dark"))
    assert "prefers-color-scheme: dark" in auto
    assert "prefers-color-scheme" not in light + dark
    assert ".ground { fill: #ffffff }" in light
    assert ".ground { fill: #0d1117 }" in dark


def test_a_reader_without_eyes_is_told() -> None:
    case = next(case for case in BOOK if "2-10 right" in case.name)
    root = Picture(svg(of_case(case))).root
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    told = root.findtext("{http://www.w3.org/2000/svg}desc")
    assert "9 events (8 counted, 1 late). 4 panes: 5 on time at 12:06:00" in told


def test_a_width_that_no_one_can_read_is_refused() -> None:
    with pytest.raises(PenstockError, match="a picture of 80 pixels cannot be drawn"):
        Look(80)


def test_a_title_tells_a_pane_in_full() -> None:
    case = next(case for case in BOOK if "2-12" in case.name)
    first = Picture(svg(of_case(case))).titles("pane")[0]
    assert first == f"5 (early, pane 0): TeamX, {show(parse('12:00'))} to 12:02:00, emitted 12:06:00"


def test_a_whole_row_is_told_and_not_written_beside_its_dot() -> None:
    """A run is observed with the rows of events, whose first words are the same."""
    row = "user user-0673, points 16, device phone"
    drawn = svg(Plane("", (Dot(0, 0, "red", row), Dot(30_000_000, 30_000_000, "red", "7")), ()))
    assert Picture(drawn).texts("value") == ["7"]
    assert row[:20] in drawn
