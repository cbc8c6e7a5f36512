"""Do the triggers fire as Apache Beam's transcripts say, and can documents in their form be played as they are?"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import CaseError
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from penstock.testing.beam_transcripts import trigger, window
from penstock.testing.case_expressions import make
from penstock.testing.case_player import play, play_step
from penstock.testing.cases import Case, Step, read

CASES = read(Path(__file__).parent / "beam.toml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_transcript(case: Case, engine: str) -> None:
    assert play(case, engine).failure is None


def test_all_eighteen_are_there() -> None:
    assert len(CASES) == 18


def test_five_are_wrong_on_purpose() -> None:
    assert Counter(case.error for case in CASES if case.error) == {"Unmatched output": 3, "Unexpected output": 2}


def test_the_deviations_are_these_and_no_more() -> None:
    named = Counter(name.split(":")[0] for case in CASES for name in case.deviations)
    assert named == {"pane time": 5, "closed sessions": 1, "withdrawal": 2}


# Documents in Beam's form, as they are

EARLY_LATE = "AfterWatermark(early=AfterCount(1), late=AfterCount(1))"
SESSIONS = [
    {"input": [0, 20]},
    {"expect": [{"window": [0, 9], "values": [0], "early": True}, {"window": [20, 29], "values": [20], "index": 0}]},
    {"watermark": 50},
    {"expect": [{"window": [0, 9], "values": [], "early": False}, {"window": [20, 29], "values": [], "index": 1}]},
    {"input": [10]},
    {"expect": [{"window": [0, 29], "values": [20, 0, 10], "late": True, "index": 0, "nonspeculative_index": 0}]},
]


def written(tmp_path: Path, *documents: dict[str, Any]) -> list[Case]:
    path = tmp_path / "documents.json"
    path.write_text(json.dumps(documents))
    return read(path)


@pytest.mark.parametrize(
    ("beam", "ours"),
    [
        ("FixedWindows(10)", 'tumbling("10 us")'),
        ("FixedWindows(10, offset=3)", 'tumbling("10 us", offset="3 us")'),
        ("window.SlidingWindows(10, 5)", 'sliding("10 us", "5 us")'),
        ("SlidingWindows(size=10, period=5, offset=-1)", 'sliding("10 us", "5 us", offset="-1 us")'),
        ("Sessions(10)", 'session("10 us")'),
        ("Sessions(gap_size=10)", 'session("10 us")'),
        ("GlobalWindows()", "global_window()"),
    ],
)
def test_windows_of_beam_are_ours(beam: str, ours: str) -> None:
    assert make(window(beam), "window") == make(ours, "window")


@pytest.mark.parametrize(
    ("beam", "ours"),
    [
        ("Default", "at_watermark()"),
        ("DefaultTrigger()", "at_watermark()"),
        ("AfterWatermark(AfterCount(2), None)", "at_watermark(early=count(2))"),
        ("AfterWatermark(late=AfterProcessingTime(5))", 'at_watermark(late=after("5 us"))'),
        ("AfterProcessingTime", 'after("0")'),
        ("Always", "repeat(count(1))"),
        ("_Never()", "never()"),
        ("Repeatedly(AfterAny(AfterCount(3), AfterProcessingTime(delay=5)))", 'repeat(count(3) | after("5 us"))'),
        ("AfterFirst(AfterCount(1), AfterCount(2), AfterCount(3))", "count(1) | count(2) | count(3)"),
        ("AfterAll(AfterCount(count=3), AfterWatermark())", "count(3) & at_watermark()"),
        ("AfterEach(AfterCount(1), AfterCount(2), AfterCount(3))", "count(1).then(count(2).then(count(3)))"),
        ("OrFinally(Repeatedly(AfterCount(2)), AfterCount(9))", "repeat(count(2)).until(count(9))"),
    ],
)
def test_triggers_of_beam_are_ours(beam: str, ours: str) -> None:
    assert make(trigger(beam), "trigger") == make(ours, "trigger")


def test_a_document_is_played_as_it_is(engine: str, tmp_path: Path) -> None:
    said = {"name": "merged", "window_fn": "Sessions(10)", "trigger_fn": EARLY_LATE, "allowed_lateness": 100}
    fixed = {"name": "fixed", "window_fn": "FixedWindows(10)", "timestamp_combiner": "OUTPUT_AT_EOW"}
    panes = [{"window": [0, 9], "values": [3, 1], "timestamp": 9, "final": True}]
    cases = written(
        tmp_path,
        {**said, "accumulation_mode": "discarding", "transcript": SESSIONS},
        {**fixed, "transcript": [{"input": [1, 3]}, {"watermark": 10}, {"expect": panes}, {"state": {}}]},
        {**fixed, "error": "Unexpected output", "transcript": [{"input": [1]}, {"watermark": 10}]},
        {"name": "nothing said", "transcript": [{"now": 7}, {"input": [1]}]},
    )
    assert [play(case, engine).failure for case in cases] == [None] * 4


@pytest.mark.parametrize(
    ("withdrawn", "what"),
    [
        (lambda pane: [pane], None),
        (lambda pane: [], "was to be withdrawn"),
        (lambda pane: [replace(pane, index=0)], "what does not stand is withdrawn"),
        (lambda pane: [replace(pane, values={"values": []})], "were to be withdrawn, and not"),
    ],
)
def test_withdrawals_of_which_a_document_says_nothing_are_checked(
    withdrawn: Any, what: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"window_fn": "Sessions(10)", "trigger_fn": EARLY_LATE, "allowed_lateness": 100}
    (case,) = written(tmp_path, {**said, "accumulation_mode": "discarding", "transcript": SESSIONS})

    def otherwise(script: Script, step: Step) -> Outcome:
        outcome = play_step(script, step)
        panes = [one for pane in outcome.panes for one in ([pane] if pane.op > 0 else withdrawn(pane))]
        return replace(outcome, panes=tuple(panes))

    monkeypatch.setattr("penstock.testing.case_player.play_step", otherwise)
    failure = play(case, "reference").failure
    assert failure is None if what is None else what in str(failure)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"window_fn": "FixedWindow(10)"}, "no 'FixedWindow'"),
        ({"trigger_fn": "AfterCounts(2)"}, "no 'AfterCounts'"),
        ({"trigger_fn": "AfterCount(2, 3)"}, "arguments that AfterCount has not"),
        ({"trigger_fn": "AfterCount("}, "cannot be read"),
        ({"lateness": 3}, "no key 'lateness'"),
        ({"transcript": [{"inputs": [1]}]}, "no step 'inputs'"),
        ({"transcript": [{"input": [1]}, {"expect": [{"idx": 0}]}]}, "no fact of a pane 'idx'"),
    ],
)
def test_what_a_document_cannot_say_is_refused(document: dict[str, Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=what) as caught:
        written(tmp_path, {"transcript": [], **document})
    assert caught.value.why
    assert caught.value.instead


def test_documents_of_a_yaml_file_are_parted_by_lines(engine: str, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        "name: one\ntranscript:\n  - input: [1]\n---\nname: two\ntranscript:\n  - input: [2]\n"
    )
    cases = read(tmp_path / "two.yaml")
    assert [(case.name, play(case, engine).failure) for case in cases] == [("one", None), ("two", None)]
