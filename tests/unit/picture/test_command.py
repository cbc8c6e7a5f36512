"""Does `penstock picture` draw what it is asked for, and does every mistake get a sentence?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.cli.main import main
from penstock.cli.picture import write
from penstock.observability.time_plane import Dot, Plane
from penstock.picture import Look, svg
from tests.unit.picture.reading import Picture

BOOK = str(Path(__file__).parents[2] / "conformance/book/streaming_systems.toml")


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def picture(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """The command, called in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Said:
        code = main(["picture", *arguments])
        return Said(code, *capsys.readouterr())

    return call


def test_the_ending_says_what_is_drawn(picture):
    assert picture(BOOK, "--case", "2-13", "-o", "a.svg") == (0, "a.svg: 9 events, 9 panes\n", "")
    assert "0 on time" in Picture(Path("a.svg").read_text("utf-8")).chips()
    assert picture(BOOK, "--case", "2-13", "-o", "a.png").code == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    said = picture(BOOK, "--case", "2-13", "-o", "a.jpg")
    assert (said.code, said.out) == (1, "")
    assert "instead: write -o a.svg, or a.png" in said.err
    assert not Path("a.jpg").exists()


def test_without_a_name_it_is_named_after_the_case(picture):
    assert picture(BOOK, "--case", "2-13").out == "2_9_figure_2_13_discarding.svg: 9 events, 9 panes\n"
    assert Path("2_9_figure_2_13_discarding.svg").exists()


def test_on_stdout_there_is_the_picture_alone(picture):
    said = picture(BOOK, "--case", "2-13", "--dark", "--width", "400", "-o", "-")
    assert Picture(said.out).root.get("width") == "400"
    assert "prefers-color-scheme" not in said.out


def test_a_case_is_found_by_a_part_of_its_name(picture):
    said = picture(BOOK)
    assert said.code == 1
    assert "has 13 cases" in said.err
    assert "say which: --case '2-1, figure 2-3: classic batch'" in said.err
    assert "2 cases of" in picture(BOOK, "--case", "figure 2-11").err
    assert "did you mean 'validity windows'?" in picture(BOOK, "--case", "valdity windows").err
    assert picture(BOOK, "--case", "VALIDITY", "-o", "a.svg").code == 0


def test_a_key_that_is_not_there(picture):
    said = picture(BOOK, "--case", "2-13", "--key", "teamx")
    assert said.code == 1
    assert "no event and no pane has the key 'teamx'" in said.err
    assert "did you mean 'TeamX'?" in said.err
    assert picture(BOOK, "--case", "2-13", "--key", "TeamX", "-o", "a.svg").code == 0


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("nowhere.toml", "there is no file nowhere.toml"),
        (".", ". is a folder"),
        ("broken.toml", "the file cannot be read"),
        ("notes.txt", ".txt is not the ending of a case file"),
        ("broken.json", "the file cannot be read"),
        ("odd.json", "odd.json is no plane"),
        ("odder.json", "odder.json is no plane"),
        ("refused.toml", "has nothing to draw"),
    ],
)
def test_what_cannot_be_drawn(picture, source, what):
    Path("broken.toml").write_text("[[case")
    Path("broken.json").write_text("{")
    Path("notes.txt").write_text("x")
    Path("odd.json").write_text('{"dots": [{"event_time": "noon"}]}')
    Path("odder.json").write_text('{"dots": [{"event_time": "noon", "now": 1}]}')
    Path("refused.toml").write_text('[[case]]\nname = "no"\nrefused = "x"\n')
    said = picture(source)
    assert (said.code, said.out) == (1, "")
    assert what in said.err
    assert "instead:" in said.err
    assert "did not foresee" not in said.err


def test_a_file_that_cannot_be_written(picture):
    said = picture(BOOK, "--case", "2-13", "-o", "not/there/a.svg")
    assert said.code == 1
    assert "cannot be written" in said.err


def test_a_plane_that_was_kept_is_drawn_again(picture):
    plane = Plane("kept", (Dot(0, 1_000_000, "k", "5"), Dot(2_000_000, 3_000_000, "k", "6")))
    Path("kept.json").write_text(json.dumps(plane.plain()))
    assert picture("kept.json", "-o", "kept.svg").out == "kept.svg: 2 events, 0 panes\n"
    assert Path("kept.svg").read_text("utf-8") == svg(plane)


def test_a_plane_from_elsewhere_is_written_the_same_way(tmp_path):
    plane = Plane("recorded", (Dot(0, 1_000_000, "k", "5"),))
    assert write(plane, tmp_path / "r.svg", Look(), key="k") == tmp_path / "r.svg"
    assert (tmp_path / "r.svg").read_text("utf-8") == svg(plane, key="k")
