"""Does everything that the documentation shows run: each Python block of each page, in order, in one namespace?"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (*ROOT.glob("docs/*.md"), ROOT / "README.md") if page.exists())
BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```python\n([^`]*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The blocks of a page in a language, each with the line on which it starts."""
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start()].count("\n") + 2, found[2]) for found in BLOCK.finditer(text) if found[1] == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shared: dict[str, object] = {"__name__": "page", "ps": ps}
    for line, source in blocks(page, "python"):
        if ">>>" in source:
            test = doctest.DocTestParser().get_doctest(source, shared, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            shared.update(test.globs)
            assert runner.failures == 0, f"{page.name}, line {line}: see the output above"
        else:
            # Newlines before the source let a traceback name the page's own line.
            exec(compile("\n" * (line - 1) + source, str(page), "exec"), shared)


def test_a_block_prints_the_text_that_follows_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [found.groups() for page in PAGES for found in PRINTED.finditer(page.read_text(encoding="utf-8"))]
    assert shown, "the README shows what its example prints"
    for source, printed in shown:
        exec(compile(source, "page", "exec"), {"__name__": "page", "ps": ps})
        assert capsys.readouterr().out == printed


def test_the_commands_of_the_readme_are_targets() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert asked
    assert [name for name in asked if name not in targets] == []


def test_the_kit_shows_each_of_its_methods() -> None:
    from penstock.testing import Script

    said = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    missing = [name for name in vars(Script) if not name.startswith("_") and f"`{name}" not in said]
    assert missing == []


def test_every_key_of_a_case_file_is_explained() -> None:
    from penstock.testing.cases import CASE_KEYS, FILE_KEYS, STEP_KEYS

    said = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    assert [key for key in (*FILE_KEYS, *CASE_KEYS, *STEP_KEYS) if f"`{key}`" not in said] == []


def test_the_case_files_that_the_kit_shows_pass(tmp_path: Path, engine: str) -> None:
    from penstock.testing.__main__ import main

    shown = blocks(ROOT / "docs/testing.md", "toml")
    assert shown
    for line, source in shown:
        (tmp_path / f"line_{line}.toml").write_text(source, encoding="utf-8")
    assert main(["play", str(tmp_path), "--engine", engine]) == 0
