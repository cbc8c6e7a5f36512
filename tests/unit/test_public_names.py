"""Every public name is documented, and the plan, the reference and the kit run on the standard library alone."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import penstock as ps

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(
    name for name, value in vars(ps).items() if not name.startswith("_") and not isinstance(value, ModuleType)
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_documented(name):
    api = (DOCS / "api.md").read_text("utf-8")
    assert re.search(rf"`(ps\.)?{name}\b", api), f"docs/api.md does not speak of {name}"


def test_every_page_speaks_only_of_public_names_that_exist():
    for page in DOCS.glob("*.md"):
        for name in set(re.findall(r"\bps\.([a-zA-Z_]+)", page.read_text("utf-8"))):
            assert hasattr(ps, name), f"{page.name} speaks of ps.{name}"


@pytest.mark.parametrize("page", sorted(page.name for page in DOCS.glob("*.md")))
def test_every_rule_names_a_file_and_a_test_that_exist(page):
    root = DOCS.parent
    text = (DOCS / page).read_text("utf-8")
    for path, name in set(re.findall(r"(penstock/[\w/]+\.py)(?:::(\w+))?", text)):
        assert (root / path).exists(), f"{page} names {path}"
        there = (root / path).read_text("utf-8")
        assert not name or re.search(rf"(def|class) {name}\b", there), f"{page} names {path}::{name}"
    for path, test in set(re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", text)):
        assert f"def {test}(" in (root / path).read_text("utf-8"), f"{page} names {path}::{test}"


def test_every_change_across_restarts_names_a_test_that_exists():
    text = (DOCS / "running.md").read_text("utf-8")
    changes = text.partition("## What may change between two runs")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)`", changes))
    there = (DOCS.parent / "tests/integration/spark/test_restarts.py").read_text("utf-8")
    assert named
    assert [name for name in sorted(named) if f"def {name}(" not in there] == []


def test_every_error_is_documented():
    for module in pkgutil.walk_packages(ps.__path__, "penstock."):
        if not module.name.startswith("penstock.testing") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    api = (DOCS / "api.md").read_text("utf-8")
    assert [kind.__name__ for kind in _below(ps.PenstockError) if f"`{kind.__name__}`" not in api] == []


def _below(kind):
    """Every error of ours that a user may meet."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("penstock."):
            yield one
        yield from _below(one)


ALONE = """
import importlib, pkgutil, sys

sys.path.insert(0, sys.argv[1])
import penstock as ps
from penstock.testing import Script

stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.bounded("1 minute"))
script = Script(stream.window(ps.tumbling("5 minutes")).aggregate(total=ps.sum("v")))
script.batch("at     v\\n12:00  3\\n12:07  4")
script.batch()
script.expect({"total": 3, "start": "12:00"})

NEED_ARROW = ("penstock.types.arrow", "penstock.storage", "penstock.engine", "penstock.connectors",
              "penstock.checkpoint", "penstock.observability", "penstock.coordinator", "penstock.dashboard",
              "penstock.testing.pytest_plugin", "penstock.testing.recording", "penstock.spark", "penstock.cli")
for module in pkgutil.walk_packages(ps.__path__, "penstock."):
    if not module.name.startswith(NEED_ARROW) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("played")
"""


def alone(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python that has no site-packages, so that nothing but the standard library is there."""
    command = [sys.executable, "-I", "-S", "-c", script, str(DOCS.parent)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_alone_really_is_alone():
    assert "No module named 'pyarrow'" in alone("import pyarrow").stderr


def test_the_plan_the_reference_and_the_kit_need_the_standard_library_alone():
    done = alone(ALONE)
    assert done.stdout.strip() == "played", done.stderr


def test_approximate_aggregates_without_their_package_say_what_to_install():
    done = alone(ALONE.replace("ps.sum", "ps.approx_distinct"))
    assert "pip install 'penstock[sketches]'" in done.stderr


def test_importing_has_no_side_effects():
    quiet = "import penstock, threading, sys; print(threading.active_count(), len(sys.argv))"
    done = subprocess.run([sys.executable, "-c", quiet], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("1 1", "")
