"""The copy without a server: made of the pages, what the presets give, and a package that needs nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from penstock.errors import PenstockError
from penstock.playground import static_site
from penstock.playground.api import played
from penstock.playground.lessons import LESSONS

# Without site-packages: what the zip lacks cannot come from elsewhere.
ALONE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from penstock.playground.api import answer
print(json.dumps([json.loads(answer(json.dumps(one))) for one in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    made = tmp_path_factory.mktemp("copy")
    static_site.site(made)
    return made


def test_the_package_plays_with_the_standard_library_alone(out):
    asked = [{"lesson": lesson.id, "values": {}} for lesson in LESSONS.values()]
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(out / "penstock.zip"), json.dumps(asked)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == [json.loads(json.dumps(played(lesson, {}))) for lesson in LESSONS]


def test_what_the_presets_give_is_shipped(out):
    shown = json.loads((out / "shown.json").read_text("utf-8"))
    assert len(shown) == sum(len(lesson.presets) for lesson in LESSONS.values())
    assert shown[0] == json.loads(json.dumps(played("two-clocks", {})))


def test_the_page_says_where_it_is_played_and_what_it_may_load(out):
    page = (out / "index.html").read_text("utf-8")
    assert 'data-engine="browser"' in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "unsafe-inline" not in policy[1]
    assert "'unsafe-eval'" not in policy[1]


def test_the_same_package_each_time(out, tmp_path):
    static_site._package(tmp_path / "again.zip", static_site._played_apart()["modules"])
    assert (tmp_path / "again.zip").read_bytes() == (out / "penstock.zip").read_bytes()


def test_another_pyodide_is_refused(tmp_path):
    wrong = tmp_path / "pyodide.tgz"
    wrong.write_bytes(b"not it")
    with pytest.raises(PenstockError, match="not the package that was pinned") as error:
        static_site.pyodide(tmp_path, wrong)
    assert "INTEGRITY" in error.value.instead
    assert not (tmp_path / "pyodide").exists()
