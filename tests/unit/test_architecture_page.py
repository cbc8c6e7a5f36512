"""What docs/architecture.md and CONTRIBUTING.md say of files is so: the extension points, the formats, every path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
CODE = re.compile(r"`([^`]+)`")


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of each row of the table under a heading of the page."""
    section = re.split(r"^#+ ", PAGE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


EXTENSIONS = list(rows("Extension points"))


@pytest.mark.parametrize(
    ("what", "example", "number", "files", "beside"), EXTENSIONS, ids=[row[0] for row in EXTENSIONS]
)
def test_an_extension_point_has_these_files(what: str, example: str, number: str, files: str, beside: str) -> None:
    paths = CODE.findall(files)
    assert len(paths) == len(set(paths)) == int(number)
    word = re.compile(r"(?<![a-z])({})(?![a-z])".format("|".join(CODE.findall(example))))
    assert [path for path in paths if not word.search((ROOT / path).read_text("utf-8"))] == []
    assert [path for path in CODE.findall(beside) if "/" in path and not (ROOT / path).exists()] == []


def test_every_format_is_in_the_table_with_its_number() -> None:
    shown = {}
    for _, number, constant, _, _ in rows("Formats on disk"):
        name, path = CODE.findall(constant)
        shown[path, name] = int(number)
    found = {}
    for path in (ROOT / "penstock").rglob("*.py"):
        for name, number in re.findall(r"^(FORMAT|VERSION) = (\d+)$", path.read_text("utf-8"), re.MULTILINE):
            found[path.relative_to(ROOT).as_posix(), name] = int(number)
    assert shown == found


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_path_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    paths = set(re.findall(r"`((?:penstock|tests|docs|bench|examples)/[\w./]*\w/?)(?:::\w+)?`", text))
    in_checkpoints = {f"penstock/{name}" for name in ("answers", "identity", "monitor", "said", "tables")}
    assert len(paths) > 20
    assert [path for path in sorted(paths - in_checkpoints) if not (ROOT / path).exists()] == []
