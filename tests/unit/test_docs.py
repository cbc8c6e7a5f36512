"""Does everything that the documentation shows run: each Python block of each page, and the commands beside them?"""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.playing import ON_SPARK, PAGES, ROOT, blocks, play

PLAIN = [page for page in PAGES if page.name not in ON_SPARK]
# Made from the commands and compared with them by a test of its own; its blocks are patterns, not commands.
GENERATED = "cli.md"
COMMANDS = [
    (page.name, line.split("  #")[0].strip())
    for page in PAGES
    if page.name != GENERATED
    for block in blocks(page, "sh")
    for line in block.source.replace("\\\n", " ").splitlines()
    if line and not line.startswith((" ", "#"))
]
OTHERS = ("git", "cd", "sqlite3", "spark-submit", "pytest", "sudo")


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play(page)


def test_the_pipeline_of_the_readme_is_the_example() -> None:
    shown = blocks(ROOT / "README.md", "python")[0].source
    assert shown == (ROOT / "examples/team_scores.py").read_text(encoding="utf-8")
    assert len(shown.splitlines()) <= 25


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_command_that_a_page_shows_exists(page: str, command: str) -> None:
    words = [word for word in shlex.split(command) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    known = {"make": _target, "penstock": _parsed, "pip": _installable, "python": _module}
    if words[0] in OTHERS:
        return
    assert words[0] in known, f"{page} shows {command}"
    known[words[0]](words[1:])


def _target(words: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(words) <= set(targets)


def _parsed(words: list[str]) -> None:
    from typer.main import get_command

    from penstock.cli.commands import app

    command = get_command(app)
    if words == ["--version"]:
        return
    assert words[0] in command.commands
    command.commands[words[0]].make_context(words[0], words[1:])  # raises where an option is unknown or missing


def _installable(words: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = [
        extra for word in words for one in re.findall(r"^(?:\.|penstock)\[(.+)\]", word) for extra in one.split(",")
    ]
    assert words[0] == "install"
    assert [extra for extra in asked if extra not in extras] == []


def _module(words: list[str]) -> None:
    if words[0] == "-m":
        assert find_spec(words[1]) is not None
    else:
        assert (ROOT / words[0]).exists()


def test_a_link_leads_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_setting_and_variable_is_explained() -> None:
    from penstock.spark.session import QUERY_SETTINGS, SESSION_SETTINGS

    said = (ROOT / "docs/running.md").read_text(encoding="utf-8")
    assert [name for name in (*QUERY_SETTINGS, *SESSION_SETTINGS) if f"`{name}" not in said] == []
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "penstock").rglob("*.py"))
    variables = sorted(set(re.findall(r"\bPENSTOCK_[A-Z_]+", sources)))
    assert [name for name in variables if f"`{name}`" not in said] == []


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
    for block in shown:
        (tmp_path / f"line_{block.line}.toml").write_text(block.source, encoding="utf-8")
    assert main(["play", str(tmp_path), "--engine", engine]) == 0
