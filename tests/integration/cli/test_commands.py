"""Do the commands that need no Spark do what they say, and does every mistake get a sentence and an exit code?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from penstock.cli.commands import app
from penstock.cli.docs import reference
from tests.integration.cli.conftest import ONE, TOTALS, TWO

ROOT = Path(__file__).parents[3]
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]


def test_the_version(penstock):
    assert penstock("--version") == (0, f"penstock {ps.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(penstock, command):
    said = penstock(command, "--help")
    assert said.code == 0
    assert f"Example: penstock {command}" in said.out or f"• penstock {command}" in said.out


def test_the_reference_page_is_what_the_commands_say():
    page = ROOT / "docs" / "cli.md"
    assert page.read_text("utf-8") == reference(), "write: python -m penstock.cli.docs > docs/cli.md"


def test_a_mistyped_command_is_a_usage_error_that_names_the_right_one(penstock):
    said = penstock("rnu", "x.py")
    assert said.code == 2
    assert "Did you mean 'run'?" in said.err


def test_a_wrong_choice_is_a_usage_error(penstock):
    said = penstock("run", "x.py", "--until", "caugth_up")
    assert said.code == 2
    assert "caught_up" in said.err


def test_check_says_ok(penstock):
    Path("one.py").write_text(ONE)
    assert penstock("check", "one.py") == (0, "ok: team-scores\n", "")
    assert json.loads(penstock("check", "one.py", "--json").out) == {
        "ok": True, "file": "one.py", "pipeline": "team-scores", "warnings": [],
    }  # fmt: skip


def test_check_warns_without_failing(penstock):
    Path("one.py").write_text(ONE.replace('bounded("5 seconds")', 'bounded("5 seconds", idle=None)'))
    said = penstock("check", "one.py")
    assert said.code == 0
    assert said.out.startswith("warning: idle=None")


def test_a_refused_plan_is_told_in_three_parts_with_its_line(penstock):
    Path("one.py").write_text(ONE.replace('ps.sum("points")', 'ps.sum("pionts")'))
    said = penstock("check", "one.py")
    assert (said.code, said.out) == (1, "")
    assert "error: points = sum names the column 'pionts'" in said.err
    assert "instead: did you mean 'points'?" in said.err
    assert "where:   one.py, line 6: totals = " in said.err
    assert "Traceback" not in said.err
    told = json.loads(penstock("check", "one.py", "--json").out)
    assert not told["ok"]
    assert told["error"]["instead"] == "did you mean 'points'?"


def test_explain_says_what_where_when_and_how(penstock):
    Path("one.py").write_text(ONE)
    said = penstock("explain", "one.py")
    assert said.code == 0
    assert "what:   points = sum(points), plays = rows()" in said.out
    assert "SQLite scores.db, table totals" in said.out


@pytest.mark.parametrize("name", ["other", "others"])
def test_of_several_pipelines_one_is_named_by_its_variable_or_its_name(penstock, name):
    Path("two.py").write_text(TWO)
    assert penstock("check", f"two.py:{name}").out == "ok: others\n"


def test_several_pipelines_are_listed(penstock):
    Path("two.py").write_text(TWO)
    said = penstock("check", "two.py")
    assert said.code == 1
    assert "two.py has 2 pipelines: team_scores, other" in said.err
    assert "instead: say which: two.py:team_scores" in said.err
    assert "did you mean 'other'?" in penstock("check", "two.py:othre").err


def test_one_pipeline_under_two_names_is_one(penstock):
    Path("one.py").write_text(ONE + "again = team_scores\n")
    assert penstock("check", "one.py").code == 0


def test_a_file_without_a_pipeline_says_how_to_make_one(penstock):
    Path("none.py").write_text(TOTALS)
    said = penstock("check", "none.py")
    assert said.code == 1
    assert "there is no pipeline in none.py" in said.err
    assert "ps.pipeline(" in said.err


def test_a_file_that_is_not_there(penstock):
    Path("scores.py").write_text(ONE)
    assert "did you mean 'scores.py'?" in penstock("check", "score.py").err
    assert "penstock init" in penstock("check", "quite/different.py").err


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\ny = x + nothing\n", "NameError: name 'nothing' is not defined"),
        ("x = (\n", "SyntaxError"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_file_that_does_not_run_names_its_line(penstock, source, told):
    Path("broken.py").write_text(source)
    said = penstock("explain", "broken.py")
    assert said.code == 1
    assert f"error: broken.py does not run: {told}" in said.err
    assert "broken.py, line " in said.err
    assert "Traceback" not in said.err


def test_without_its_packages_the_command_says_what_to_install(penstock, monkeypatch):
    monkeypatch.delitem(sys.modules, "penstock.cli.commands", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert penstock("--version").code == 0
    said = penstock("check", "one.py")
    assert said.code == 1
    assert "error: the package typer is not installed" in said.err
    assert "pip install" in said.err


def test_with_debug_there_is_a_traceback(penstock, monkeypatch):
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    assert "Traceback" in penstock("check", "nothing.py").err


def test_a_file_is_run_by_its_neighbours_and_not_as_main(penstock):
    Path("neighbour_of_one.py").write_text(TOTALS)
    Path("one.py").write_text(
        "from neighbour_of_one import ps, totals\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Row:\n"
        '    a: "int"\n\n\np = ps.pipeline("p", totals.write(ps.sqlite("p.db", table="t")))\n'
        'if __name__ == "__main__":\n    raise ValueError\n'
    )
    assert penstock("check", "one.py").out == "ok: p\n"


def test_a_module_is_named_without_py(penstock, tmp_path):
    Path("a_module_of_ones.py").write_text(ONE)
    assert penstock("check", "a_module_of_ones:team_scores").out == "ok: team-scores\n"
    assert "there is no module nowhere_at_all" in penstock("check", "nowhere_at_all:x").err


def test_init_writes_a_pipeline_that_is_right_and_never_writes_over_it(penstock):
    said = penstock("init")
    assert said.code == 0
    assert "penstock run team_scores.py" in said.out
    assert penstock("check", "team_scores.py").out == "ok: team-scores\n"
    before = Path("team_scores.py").read_text()
    again = penstock("init")
    assert again.code == 1
    assert "is there already" in again.err
    assert Path("team_scores.py").read_text() == before
    assert max(len(line) for line in before.splitlines()) <= 120


def test_init_takes_a_name(penstock):
    assert penstock("init", "my-game.py").code == 0
    assert penstock("check", "my-game.py").out == "ok: my-game\n"
    assert penstock("init", "../up").code == 1


def test_the_example_of_the_readme_is_right_and_short(penstock):
    file = ROOT / "examples" / "team_scores.py"
    assert penstock("check", str(file)).out == "ok: team-scores\n"
    assert len(file.read_text("utf-8").splitlines()) <= 25


def test_help_and_check_import_neither_spark_nor_more_than_they_need(tmp_path):
    (tmp_path / "one.py").write_text(ONE)
    for arguments, unwanted in (
        (["--help"], {"pyspark", "pyarrow", "numpy"}),
        (["check", "one.py"], {"pyspark", "pandas"}),
    ):
        script = (
            "import sys\nfrom penstock.cli.main import main\n"
            f"code = main({arguments!r})\nprint(code, sorted({unwanted!r} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
        assert done.stdout.splitlines()[-1] == "0 []", done.stderr
