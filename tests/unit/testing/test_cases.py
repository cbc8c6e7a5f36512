"""Does a case file say what its keys say, is a wrong one refused with a reason, and does the command tell the truth?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import CaseError
from penstock.testing.__main__ import main
from penstock.testing.case_player import pipeline, play
from penstock.testing.cases import find, read
from penstock.testing.engines import ENGINES

ROW = {"key": "a", "value": 1, "at": "12:00:10"}
PANE = {"key": "a", "total": 1, "window": ["12:00", "12:01"], "timing": "on_time"}
GOOD: dict[str, Any] = {
    "name": "one row",
    "key_by": ["key"],
    "window": 'tumbling("1 minute")',
    "aggregate": {"total": 'sum("value")'},
    "step": [{"rows": [ROW]}, {"watermark": "12:01", "panes": [PANE]}],
}


def written(tmp_path: Path, *cases: dict[str, Any], **more: Any) -> Path:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"suite": "small", "case": list(cases), **more}))
    return path


def failure(tmp_path: Path, engine: str = "reference", **changed: Any) -> str | None:
    return play(read(written(tmp_path, {**GOOD, **changed}))[0], engine).failure


# -------------------------------------------------------------------------------------------------------- format


def test_toml_json_and_defaults_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "cases.toml").write_text(
        """
        suite = "small"
        [defaults]
        key_by = ["key"]
        window = 'tumbling("1 minute")'
        aggregate = { total = 'sum("value")' }
        [[case]]
        name = "one row"
        [[case.step]]
        rows = [{ key = "a", value = 1, at = 12:00:10 }]
        [[case.step]]
        watermark = "12:01"
        panes = [{ key = "a", total = 1, window = ["12:00", "12:01"], timing = "on_time" }]
        """
    )
    assert read(tmp_path / "cases.toml") == read(written(tmp_path, GOOD))


def test_a_step_may_be_written_as_tables_of_text(tmp_path: Path, engine: str) -> None:
    rows = "key   value  at\na     1      12:00:10\nnull  2      12:00:20"
    panes = "key   total  timing\na     1      on_time\nnull  2      on_time"
    assert failure(tmp_path, engine, step=[{"rows": rows}, {"watermark": "12:01", "panes": panes}]) is None


def test_every_kind_of_expectation(tmp_path: Path, engine: str) -> None:
    step = [
        {"rows": [ROW, {**ROW, "value": "x"}], "quarantined": [{"value": "x", "reason": "not an integer"}]},
        {"watermark": "12:01", "panes": [{**PANE, "nsi": 0, "first": True, "early": False, "late": False}]},
        {"restart": True, "rows": [ROW], "late": [{"at": "12:00:10", "W": "12:01", "late_by": "50 seconds"}]},
        {"rows": [{**ROW, "@times": 3}], "late": "any", "watermark_after": "12:01"},
        {"rows": [{**ROW, "at": "12:02", "value": v} for v in (1, "x")], "quarantined": "any"},
        {"rows": [{**ROW, "at": "13:00:00.000001", "value": "x"}], "quarantined": [{"at": "13:00:00.000001"}]},
        {"rows": [{**ROW, "at": "13:00", "value": "x"}], "quarantined": "at        reason\n13:00:00  not an integer"},
        {"resume": True, "now": "13:00"},
        {"end": True, "panes": "any", "watermark_after": "+inf"},
    ]
    assert failure(tmp_path, engine, step=step) is None


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ([{"rows": [ROW], "panes": [PANE]}], "step 1: Unmatched output"),
        ([{"rows": [ROW]}, {"watermark": "12:01"}], "step 2: Unexpected output"),
        ([{"watermark": "12:01"}, {"rows": [ROW]}], "step 2: late rows: Unexpected output"),
        ([{"rows": [{**ROW, "value": "x"}]}], "step 1: quarantine: Unexpected output"),
        ([{"watermark": "12:01", "watermark_after": "12:02"}], "the watermark is 12:01:00 and not 12:02:00"),
        ([{"rows": [{"vallue": 1}]}], "did you mean 'value'?"),
        ([{"panes": [{"ontime": True}]}], "no pane has a fact 'ontime'"),
        ([{"panes": [{"frist": True}]}], "no pane has a fact 'frist': did you mean 'first'?"),
        ([{"panes": [{"timin": 1, "absent": True, "deviation": "a: b"}]}], "no pane has a fact 'timin'"),
        ([{"late": [{"lateby": 1}]}], "no late row has a fact 'lateby': did you mean 'late_by'?"),
        ([{"quarantined": [{"reson": "x"}]}], "no quarantined row has a fact 'reson': did you mean 'reason'?"),
        ([{"rows": "key  @tims\na    2"}], "did you mean '@times'?"),
        ([{"rows": "key  @times\na    -2"}], "@times is -2"),
        (
            [{"rows": [ROW]}, {"watermark": "12:01", "panes": [{**PANE, "absent": True, "deviation": "a: b"}]}],
            "a deviation says that this is not shown",
        ),
    ],
)
def test_what_differs_is_told(step: list[dict[str, Any]], said: str, tmp_path: Path, engine: str) -> None:
    assert said in (failure(tmp_path, engine, step=step) or "it passed")


def test_wrong_on_purpose(tmp_path: Path) -> None:
    wrong = [{"rows": [ROW], "panes": [PANE]}]
    assert failure(tmp_path, error="Unmatched output", step=wrong) is None
    assert "expected 'Unexpected'" in str(failure(tmp_path, error="Unexpected", step=wrong))
    assert "it went well" in str(failure(tmp_path, error="Unmatched output"))
    many: dict[str, Any] = {"max_bad": 0, "error": "were quarantined", "step": [{"rows": [{**ROW, "value": "x"}]}]}
    assert failure(tmp_path, **many) is None


def test_refused(tmp_path: Path) -> None:
    assert failure(tmp_path, trigger="count(2)", refused="does not say how its panes relate") is None
    assert failure(tmp_path, window='tumbling("-1 minute")', refused="not longer than nothing") is None
    assert "refused, but not with" in str(failure(tmp_path, trigger="count(2)", refused="something else"))
    assert "was not refused" in str(failure(tmp_path, refused="something"))
    assert "does not say how its panes relate" in str(failure(tmp_path, trigger="count(2)"))


def test_rows_are_filtered_computed_and_united(tmp_path: Path, engine: str) -> None:
    step = [
        {"rows": [{**ROW, "@source": "web"}, {**ROW, "@source": "app", "value": 5}, {**ROW, "@partition": "app/1"}]},
        {"rows": [{**ROW, "@source": "web", "value": 100}, {**ROW, "@source": "web", "key": "no"}]},
        {"end": True, "panes": [{"total": 14}]},
    ]
    case: dict[str, Any] = {
        "sources": {"web": {}, "app": {"watermark": 'bounded("1 minute")'}},
        "where_before": "key <> 'no'",
        "with_columns": {"value": "value * 2"},
        "where": "value < 100",
    }
    assert failure(tmp_path, engine, **case, step=step) is None


def test_the_clocks(tmp_path: Path) -> None:
    for time, rule in (("event", "ByHand"), ("ingestion", "Bounded"), ("processing", "ByHand")):
        plan = pipeline(read(written(tmp_path, {**GOOD, "time": time}))[0]).plan
        assert plan.inputs[0].time is not None
        assert (plan.inputs[0].time.basis, type(plan.inputs[0].time.watermark).__name__) == (time, rule)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"windo": "x"}, "did you mean 'window'?"),
        ({"step": [{"row": []}]}, "did you mean 'rows'?"),
        ({"sources": {"web": {"shema": "x"}}}, "did you mean 'schema'?"),
        ({"window": 'tumblin("1 minute")'}, "did you mean 'tumbling'?"),
        ({"aggregate": {"n": "row()"}}, "did you mean 'rows'?"),
        ({"time": "evnt"}, "did you mean 'event'?"),
        ({"mode": "retract"}, "did you mean 'retracting'?"),
        ({"bounded": "yes"}, "bounded is true or false"),
        ({"max_bad": True}, "max_bad is a text or a number"),
        ({"key_by": [1]}, "key_by holds 1"),
        ({"step": []}, "it has no steps"),
        ({"step": [3]}, "a table was expected"),
        ({"step": [{"now": "noon"}]}, "now is no point in time"),
        ({"step": [{"end": True, "rows": []}]}, "end = true together with"),
        ({"step": [{"resume": True}]}, "resume = true without now"),
        ({"step": [{"panes": [3]}]}, "panes holds 3"),
        ({"step": [{"rows": [{"@times": "two"}]}]}, "@times is 'two'"),
        ({"step": [{"rows": [{"@times": -1}]}]}, "@times is -1"),
        ({"step": [{"rows": [{"@times": 0}]}]}, "@times is 0"),
        ({"step": [{"rows": [{"@times": True}]}]}, "@times is True"),
        ({"step": [{"late": [{"@times": 0}]}]}, "@times is 0"),
        ({"step": [{"rows": [{"@partiton": "a"}]}]}, "did you mean '@partition'?"),
        ({"step": [{"rows": "any"}]}, "rows is 'any'"),
        ({"step": [{"panes": "none"}]}, "for none write panes = []"),
        ({"step": [{"panes": ""}]}, "panes is ''"),
        ({"step": [{"late": "x"}]}, "late is 'x'"),
        ({"step": [{"quarantined": "x"}]}, 'a text table, or "any"'),
        ({"sources": {}}, "sources is empty"),
        ({"step": [{"panes": [{"absent": True}]}]}, "absent without a deviation"),
        ({"deviation": "because"}, "there is no deviation 'because'"),
    ],
)
def test_a_case_that_cannot_be_played_is_refused(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError) as refused:
        read(written(tmp_path, {**GOOD, **changed}))
    assert said in str(refused.value)
    assert "cases.json" in refused.value.what


def test_names_are_there_and_are_different(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="two cases are called 'one row'"):
        read(written(tmp_path, GOOD, GOOD))
    with pytest.raises(CaseError, match="it has no name"):
        read(written(tmp_path, {key: value for key, value in GOOD.items() if key != "name"}))


def test_deviations_are_named_and_counted(tmp_path: Path) -> None:
    step = [{"rows": [ROW], "deviation": "ours"}, {"watermark": "12:01", "panes": [{**PANE, "deviation": "b: c"}]}]
    case = read(written(tmp_path, {**GOOD, "deviation": "ours", "step": step}, deviations={"ours": "a rule"}))[0]
    assert case.deviations == ("ours: a rule", "ours: a rule", "b: c")
    assert play(case, "reference").failure is None


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text, said in (
        ("a.toml", "suite = ", "the file cannot be read"),
        ("a.json", "{", "the file cannot be read"),
        ("a.json", "[]", "a table was expected"),
        ("a.txt", "", "is not the ending of a case file"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(CaseError, match=said):
            read(tmp_path / name)
    (tmp_path / "a.yaml").write_text("case: []")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(CaseError, match="PyYAML is not installed"):
        read(tmp_path / "a.yaml")


def test_directories_are_searched(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.toml").write_text("")
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "notes.md").write_text("")
    assert [path.name for path in find([tmp_path])] == ["a.json", "b.toml"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaseError, match="holds no case file"):
        find([tmp_path / "empty"])


# ------------------------------------------------------------------------------------------------------- command


def test_the_command_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    path = written(tmp_path, {**GOOD, "deviation": "ours: a rule"})
    assert main(["play", str(path), "--engine", engine, "-v"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"passed small: one row ({engine})",
        f"small ({engine}): 1 cases, 1 passed, 1 named deviations",
        "  1 × ours: a rule",
    ]


def test_the_command_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, GOOD, {**GOOD, "name": "other", "step": [{"rows": [ROW], "panes": [PANE]}]})
    assert main(["play", str(tmp_path), "--engine", "reference"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("FAILED small: other (reference): step 1: Unmatched output")
    assert told[1:] == ["small (reference): 2 cases, 1 passed, 0 named deviations"]
    assert path.exists()


def test_the_command_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", str(tmp_path / "nothing.toml")]) == 2
    assert "the file cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), [("a.json", '{"case": []}'), ("a.json", "{}"), ("a.toml", "")])
def test_a_file_without_cases(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(text)
    assert main(["play", str(tmp_path)]) == 2
    assert "it has no cases" in capsys.readouterr().err


def test_an_engine_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(written(tmp_path, GOOD))
    monkeypatch.setitem(ENGINES, "columnar", ("penstock.nowhere", "Run"))
    assert main(["play", path, "--engine", "both"]) == 2
    assert "the engine columnar is not there" in capsys.readouterr().err
    assert main(["play", path]) == 0
    assert "does not play" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["play", "--help"])
    assert left.value.code == 0
    assert "--engine" in capsys.readouterr().out


def test_as_a_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.testing", "play", str(written(tmp_path, GOOD)), "--engine", "reference"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "small (reference): 1 cases, 1 passed, 0 named deviations\n")
