"""Are the figures of the docs those that the engine draws today, and is the code beside one the pipeline it shows?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock as ps
from penstock.picture.figures import Figure, drawn, found, listed, main
from penstock.testing.case_player import pipeline, play
from penstock.testing.cases import Case, read
from tests.docs.playing import blocks

DOCS = Path(__file__).parents[3] / "docs"
LIST = DOCS / "figures/figures.toml"
FIGURES = listed(LIST)
BOOK = DOCS.parent / "tests/conformance/book/streaming_systems.toml"
# The variable of the page that is the pipeline of the figure.
CODE = {
    "two_clocks_event.svg": ("event_time", "by_event"),
    "two_clocks_processing.svg": ("event_time", "by_clock"),
    "windows_tumbling.svg": ("windows", "tumbling"),
    "windows_sliding.svg": ("windows", "sliding"),
    "windows_session.svg": ("windows", "sessions"),
    "windows_global.svg": ("windows", "everything"),
    "watermark_perfect.svg": ("watermarks", "totals"),
    "watermark_heuristic.svg": ("watermarks", "totals"),
    "panes_each_record.svg": ("panes", "each"),
    "panes_aligned.svg": ("panes", "aligned"),
    "panes_unaligned.svg": ("panes", "unaligned"),
    "panes_perfect.svg": ("panes", "early_on_time_late"),
    "panes_heuristic.svg": ("accumulation", "accumulating"),
    "mode_discarding.svg": ("accumulation", "discarding"),
    "mode_retracting.svg": ("accumulation", "retracting"),
    "lateness.svg": ("lateness", "corrected"),
    "sessions.svg": ("sessions", "sessions"),
}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.file)
def test_a_figure_is_what_is_drawn_today(figure: Figure) -> None:
    assert (LIST.parent / figure.file).read_text("utf-8") == drawn(LIST, figure), "write: make figures"


def test_no_figure_is_left_behind() -> None:
    assert sorted(path.name for path in LIST.parent.glob("*.svg")) == sorted(figure.file for figure in FIGURES)
    assert sorted(CODE) == sorted(figure.file for figure in FIGURES)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.file)
def test_the_code_of_the_page_is_the_pipeline_of_its_figure(figure: Figure) -> None:
    name, variable = CODE[figure.file]
    page = DOCS / f"ideas/{name}.md"
    assert f"](../figures/{figure.file})" in page.read_text("utf-8")
    made: dict[str, object] = {"ps": ps}
    for block in blocks(page, "python"):
        exec(block.source, made)
    shown, drawn_from = made[variable].plan, pipeline(found(LIST, figure)).plan  # type: ignore[attr-defined]
    for part in ("window", "lateness", "trigger", "aggregates", "bounded", "shown_mode"):
        assert getattr(shown, part) == getattr(drawn_from, part), part


@pytest.mark.parametrize("case", read(LIST.parent / "ideas.toml"), ids=lambda case: case.name)
def test_the_cases_of_the_figures_pass(case: Case, engine: str) -> None:
    assert play(case, engine).failure is None


def test_every_figure_of_chapter_two_that_the_book_of_cases_has_is_drawn() -> None:
    """2-3 and 2-5 are one batch at one moment: the windows page shows them with their delays."""
    told = {number for case in read(BOOK) for number in re.findall(r"figure (\d-\d+)", case.name)}
    shown = {number for figure in FIGURES for number in re.findall(r"[Ff]igure (\d-\d+)", figure.title)}
    assert told - shown == {"2-3", "2-5"}


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    index = (DOCS / "ideas/README.md").read_text("utf-8")
    pages = [page.name for page in (DOCS / "ideas").glob("*.md") if page.name != "README.md"]
    assert [page for page in pages if f"]({page})" not in index] == []


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('[[figure]]\nfile = "a.svg"\ncases = "c.toml"\n', "a figure without case"),
        ('[[figure]]\nfile = "../a.svg"\ncases = "c.toml"\ncase = "x"\n', "is not a file's name"),
        ('[[figure]]\nfiel = "a.svg"\n', "did you mean 'file'?"),
        ("[[figure", "cannot be read"),
        ('[[figure]]\nfile = "a.svg"\ncases = "c.toml"\ncase = "x"\n', "the file cannot be read"),
    ],
)
def test_a_wrong_list_is_told(said: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.toml").write_text(said)
    assert main([str(tmp_path / "list.toml")]) == 1
    assert what in capsys.readouterr().err


def test_a_list_is_drawn_beside_itself(tmp_path: Path) -> None:
    one = f'[[figure]]\nfile = "a.svg"\ncases = "{BOOK}"\ncase = "2-13"\nkey = "TeamX"\n'
    (tmp_path / "list.toml").write_text(one)
    assert main([str(tmp_path / "list.toml")]) == 0
    assert "2-9, figure 2-13: discarding" in (tmp_path / "a.svg").read_text("utf-8")
