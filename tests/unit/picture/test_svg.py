"""Is what a picture shows what the engine showed: every value, every time, every event, read back from the SVG?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.observability.time_plane import Shown
from penstock.picture import Look, of_case, svg
from penstock.testing.case_player import begun, play_step
from penstock.testing.cases import Case, read
from penstock.types.timestamps import parse
from tests.unit.picture.reading import Picture

TESTS = Path(__file__).parents[2]
BOOK = [
    case for name in ("streaming_systems", "accumulation_tables")
    for case in read(TESTS / f"conformance/book/{name}.toml")
]  # fmt: skip
WORDS = {"early": ("early", "E"), "on_time": ("on time", "O"), "late": ("late", "L"), "gone": ("withdrawn", "W")}


def said_by(pane: Shown) -> tuple[str, str]:
    """What a chip may say of a pane."""
    word, letter = WORDS["gone" if pane.op < 0 else pane.timing]
    return f"{pane.text} {word}", f"{pane.text} {letter}"


@pytest.mark.parametrize("case", BOOK, ids=lambda case: case.name)
def test_the_values_are_those_of_the_panes(case: Case) -> None:
    """Against the script's own panes, by another road than the plane."""
    script = begun(case, "reference")
    for step in case.steps:
        play_step(script, step)
    wanted = Counter((str(pane.values["total"]), "gone" if pane.op < 0 else pane.timing) for pane in script.panes)
    names = {word: kind for kind, words in WORDS.items() for word in words}
    found = Counter()
    for chip in Picture(svg(of_case(case), Look(1200))).chips():
        value, _, word = chip.partition(" ")
        found[value, names[word]] += 1
    assert found == wanted


@pytest.mark.parametrize("width", [400, 600])
@pytest.mark.parametrize("case", BOOK, ids=lambda case: case.name)
def test_a_chip_says_what_a_pane_says_and_the_rest_is_counted(case: Case, width: int) -> None:
    plane = of_case(case)
    picture = Picture(svg(plane, Look(width)))
    left = list(plane.panes)
    for chip in picture.chips():
        left.remove(next(pane for pane in left if chip in said_by(pane)))
    noted = [note.split()[6] for note in picture.texts("note") if note.startswith("No room for the value of ")]
    assert noted == ([str(len(left))] if left else [])
    assert len(left) <= len(plane.panes) / 4


@pytest.mark.parametrize("case", BOOK, ids=lambda case: case.name)
def test_a_pane_is_as_wide_as_its_window_and_ends_when_it_was_emitted(case: Case) -> None:
    plane = of_case(case)
    picture = Picture(svg(plane))
    left, _, right, _ = picture.frame
    for pane, (start, end, top) in zip(plane.panes, picture.tops(), strict=True):
        assert start == pytest.approx(max(picture.across.at(pane.start), left), abs=0.3)
        assert end == pytest.approx(min(picture.across.at(pane.end), right), abs=0.3)
        assert top == pytest.approx(picture.up.at(pane.now), abs=0.3)


@pytest.mark.parametrize("case", BOOK, ids=lambda case: case.name)
def test_every_event_lies_at_its_two_times(case: Case) -> None:
    plane = of_case(case)
    picture = Picture(svg(plane))
    counted = {(dot.event_time, dot.now) for dot in plane.dots if dot.fate == "counted"}
    wanted = sorted((picture.across.at(time), picture.up.at(now)) for time, now in counted)
    for found, place in zip(sorted(picture.dots()), wanted, strict=True):
        assert found == pytest.approx(place, abs=0.3)


def test_the_watermark_is_a_line_of_steps() -> None:
    case = next(case for case in BOOK if "2-10 right" in case.name)
    picture = Picture(svg(of_case(case)))
    left, _, right, bottom = picture.frame
    given = [
        ("12:05", "12:00"),
        ("12:06", "12:02"),
        ("12:07:30", "12:04"),
        ("12:07:40", "12:06"),
        ("12:09:30", "12:08:30"),
    ]
    corners = [(picture.across.at(parse("12:00")), bottom)]
    for now, at in given[1:]:
        corners += [
            (corners[-1][0], picture.up.at(parse(now))),
            (picture.across.at(parse(at)), picture.up.at(parse(now))),
        ]
    corners += [(corners[-1][0], picture.up.at(parse("12:10"))), (right, picture.up.at(parse("12:10")))]
    assert [number for corner in picture.line() for number in corner] == pytest.approx(
        [number for corner in corners for number in corner], abs=0.3
    )
    assert left < picture.line()[0][0]


def test_a_late_event_is_a_cross_and_its_cause_is_written() -> None:
    case = next(case for case in BOOK if "2-10 right" in case.name)
    picture = Picture(svg(of_case(case), Look(1200)))
    assert len(picture.of("cross")) == 2  # on the plane, and in the legend
    assert picture.texts("note") == [
        "late: 9 of 12:01:25, seen 12:08:19: the watermark was at 12:06:00, "
        "beyond [12:00:00 to 12:02:00] and its lateness"
    ]
