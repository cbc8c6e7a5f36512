"""Every public name is documented, and the plan, the reference and the kit run on the standard library alone."""

from __future__ import annotations

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


@pytest.mark.parametrize("page", ["semantics.md", "triggers.md", "limits.md"])
def test_every_rule_names_a_file_and_a_test_that_exist(page):
    root = DOCS.parent
    text = (DOCS / page).read_text("utf-8")
    for path in set(re.findall(r"penstock/[\w/]+\.py", text)):
        assert (root / path).exists(), f"{page} names {path}"
    for path, test in set(re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", text)):
        assert f"def {test}(" in (root / path).read_text("utf-8"), f"{page} names {path}::{test}"


def test_the_examples_of_the_api_page_run():
    text = (DOCS / "api.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/api.md", "exec"), {"ps": ps})


ALONE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "numpy", "pyspark", "datasketches", "pandas"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import penstock as ps
import penstock.reference.run
from penstock.testing import Script

stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.bounded("1 minute"))
script = Script(stream.window(ps.tumbling("5 minutes")).aggregate(total=ps.sum("v")))
script.batch("at     v\\n12:00  3\\n12:07  4")
script.batch()
script.expect({"total": 3, "start": "12:00"})
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"pyarrow", "numpy", "pyspark", "datasketches"}, loaded
print("played")
"""


def test_the_plan_the_reference_and_the_kit_need_the_standard_library_alone():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "played", done.stderr


def test_approximate_aggregates_without_their_package_say_what_to_install():
    script = ALONE.replace("ps.sum", "ps.approx_distinct")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'penstock[sketches]'" in done.stderr


def test_importing_has_no_side_effects():
    quiet = "import penstock, threading, sys; print(threading.active_count(), len(sys.argv))"
    done = subprocess.run([sys.executable, "-c", quiet], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("1 1", "")
