"""How is a page of the documentation played: its Python blocks in order; a text after one is what it prints."""

from __future__ import annotations

import doctest
import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import penstock as ps

ROOT = Path(__file__).parents[2]
PAGES = sorted((*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"))
# Their blocks start pipelines; the other pages are played without a JVM.
ON_SPARK = ("beside_spark.md", "running.md")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of a page: the line on which it begins, what it holds, and the text that is said to be printed."""

    line: int
    source: str
    printed: str | None


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page in a language."""
    text = page.read_text(encoding="utf-8")
    found = [one for one in _BLOCK.finditer(text) if one[1] == language]
    return [Block(text[: one.start()].count("\n") + 2, one[2], one[3]) for one in found]


def play(page: Path) -> int:
    """Run the Python of a page; how many texts were compared with what was printed."""
    shared: dict[str, object] = {"__name__": "page", "ps": ps}
    compared = 0
    for block in blocks(page, "python"):
        where = f"{page.name}, line {block.line}"
        printed = _doctest(block, shared, where) if ">>>" in block.source else _run(block, shared, page)
        if block.printed is not None:
            assert printed == block.printed, f"{where} prints:\n{printed}"
            compared += 1
    return compared


def play_apart(page: str, folder: Path) -> int:
    """Run a page in a process of its own that begins in a folder, as a reader's does; how many texts were compared."""
    code = f"from tests.docs.playing import ROOT, play; print('compared', play(ROOT / {page!r}))"
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split("compared ")[-1])


def _run(block: Block, shared: dict[str, object], page: Path) -> str:
    said = io.StringIO()
    # Newlines before the source let a traceback name the page's own line.
    code = compile("\n" * (block.line - 1) + block.source, str(page), "exec")
    with redirect_stdout(said):
        exec(code, shared)
    return said.getvalue()


def _doctest(block: Block, shared: dict[str, object], where: str) -> str:
    test = doctest.DocTestParser().get_doctest(block.source, shared, where, None, block.line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said = io.StringIO()
    runner.run(test, out=said.write, clear_globs=False)
    shared.update(test.globs)
    assert runner.failures == 0, f"{where}:\n{said.getvalue()}"
    return said.getvalue()
