"""`why` names exactly the events of each pane, its batch, its watermark and the part of the trigger that fired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.observability.why.panes import KeyWhy, WindowWhy, why_window
from penstock.observability.why.replay import Replay, key_texts, replay_of
from penstock.storage.local import LocalStore
from penstock.testing import Script
from penstock.testing.case_player import pipeline as described, play_step
from penstock.testing.cases import Case, read
from penstock.testing.recording import recorded_script
from penstock.types.timestamps import parse

EXAMPLES = Path(__file__).parents[3] / "conformance/examples/worked.toml"
BOOK = Path(__file__).parents[3] / "conformance/book/streaming_systems.toml"
CASES = [case for file in (EXAMPLES, BOOK) for case in read(file) if case.refused is None and case.error is None]


def by_hand(columns: str = "at timestamp") -> ps.Stream:
    return ps.events(columns).event_time("at", watermark=ps.by_hand())


def replayed(pipeline: ps.Pipeline, folder: Path) -> Replay:
    return replay_of(pipeline, LocalStore(str(folder)))


def explained(pipeline: ps.Pipeline, folder: Path, window: str, *key: str) -> WindowWhy:
    told = why_window(replayed(pipeline, folder), key, window)
    assert isinstance(told, WindowWhy)
    return told


def new(told: WindowWhy) -> list[list[int]]:
    """The offsets of what was new in each pane."""
    return [sorted(event.offset for event in pane.new) for pane in told.panes]


def kinds(told: WindowWhy) -> list[list[tuple[str, str]]]:
    return [[(one.part, one.kind) for one in pane.because] for pane in told.panes]


@pytest.mark.parametrize("observe", [True, False])
@pytest.mark.parametrize("mode", ["accumulating", "discarding", "retracting"])
def test_01_three_modes(mode: str, observe: bool, tmp_path: Path) -> None:
    windowed = by_hand("points long, at timestamp").window(ps.tumbling("2 minutes"), lateness="1 hour")
    windowed = windowed.trigger(ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1)))
    panes = getattr(windowed, mode)().aggregate(points=ps.sum("points"))
    script, pipeline = recorded_script(panes, str(tmp_path), observe=observe)
    script.batch([{"points": 7, "at": "12:02:24"}], now="12:05:10")
    script.advance("12:06:00")
    script.batch([{"points": 3, "at": "12:03:39"}, {"points": 4, "at": "12:03:50"}], now="12:06:10")
    script.watermark("12:04")
    script.batch([{"points": 8, "at": "12:03:06"}], now="12:06:50")
    told = explained(pipeline, tmp_path, "12:02")
    assert new(told) == [[0], [1, 2], [3]]
    assert [pane.records for pane in told.panes] == [1, 3, 4]
    assert [pane.timing for pane in told.panes] == ["early", "on_time", "late"]
    assert [(pane.batch, pane.now) for pane in told.panes] == [
        (1, parse("12:06:00")), (3, parse("12:06:10")), (4, parse("12:06:50")),
    ]  # fmt: skip
    assert kinds(told) == [[("early", "ticked")], [("on time", "watermark")], [("late", "counted")]]
    assert told.panes[0].because[0].facts == {"first_at": parse("12:05:10"), "due_at": parse("12:06")}
    assert told.panes[2].because[0].facts == {"new": 1, "wanted": 1}
    assert told.panes[1].watermark == parse("12:04")
    assert [len(pane.withdrawn) for pane in told.panes] == ([0, 1, 1] if mode == "retracting" else [0, 0, 0])
    assert told.open_records == 4


def test_02_the_batch_that_reaches_the_end_is_not_the_one_that_shows_it(tmp_path: Path) -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded("20 seconds"))
    counted = stream.window(ps.tumbling("30 seconds")).aggregate(n=ps.rows())
    script, pipeline = recorded_script(counted, str(tmp_path))
    for rows in (["12:00:10"], ["12:00:49.999"], ["12:00:50", "12:00:29"], ["12:00:29"]):
        script.batch([{"at": at} for at in rows])
    told = explained(pipeline, tmp_path, "12:00")
    assert new(told) == [[0, 3]]
    assert (told.panes[0].batch, told.panes[0].watermark) == (3, parse("12:00:30"))
    assert [event.offset for event in told.late] == [4]
    assert told.open_records is None
    assert told.panes[0].final


@pytest.mark.parametrize("gap", ["12 minutes", "10 minutes"])
def test_03_an_event_between_two_sessions(gap: str, tmp_path: Path) -> None:
    sessions = by_hand().window(ps.session(gap), lateness="1 hour").accumulating().aggregate(n=ps.rows())
    script, pipeline = recorded_script(sessions, str(tmp_path))
    script.batch([{"at": "12:10"}, {"at": "12:25"}])
    script.watermark("12:40")
    script.batch([{"at": "12:15"}])
    told = explained(pipeline, tmp_path, "12:10")
    assert new(told) == [[0], [1], [2]]
    assert [pane.records for pane in told.panes] == [1, 1, 3]
    assert [gone.window.start for gone in told.panes[2].withdrawn] == [parse("12:10"), parse("12:25")]
    assert kinds(told)[2] == [("late", "new")]


@pytest.mark.parametrize(
    ("clock", "found"), [("event", {"09:00": [0, 1]}), ("processing", {"09:00": [0], "10:00": [1]})]
)
def test_04_purchases_by_either_clock(clock: str, found: dict[str, list[int]], tmp_path: Path) -> None:
    stream = by_hand() if clock == "event" else ps.events("at timestamp").processing_time()
    script, pipeline = recorded_script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"at": "09:00:00"}], now="09:43:12")
    script.batch([{"at": "09:55:00"}], now="10:05:00")
    script.end()
    for start, offsets in found.items():
        assert new(explained(pipeline, tmp_path, start)) == [offsets]


def test_07_a_phone_that_was_offline(tmp_path: Path) -> None:
    script, pipeline = recorded_script(by_hand().window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"at": "14:31"}], now="14:32")
    script.watermark("14:42")
    script.batch([{"at": "14:32"}] * 200, now="14:47")
    with pytest.raises(ps.PenstockError, match="there was no window from 14:32:00"):
        explained(pipeline, tmp_path, "14:32")
    assert new(explained(pipeline, tmp_path, "14:31")) == [[0]]


def test_08_after_the_on_time_pane(tmp_path: Path) -> None:
    counted = by_hand().window(ps.tumbling("1 minute"), lateness="1 hour").accumulating().aggregate(n=ps.rows())
    script, pipeline = recorded_script(counted, str(tmp_path))
    script.batch([{"at": "14:32"}], now="14:35")
    script.watermark("14:33")
    script.batch([{"at": "14:32"}], now="14:50")
    told = explained(pipeline, tmp_path, "14:32")
    assert new(told) == [[0], [1]]
    assert kinds(told) == [[("on time", "watermark")], [("late", "new")]]


def test_09_a_correction_leaves_the_next_window_alone(tmp_path: Path) -> None:
    windowed = by_hand().window(ps.tumbling("5 minutes"), lateness="1 hour")
    script, pipeline = recorded_script(windowed.accumulating().aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"at": "09:56"}, {"at": "10:01"}], now="10:02")
    script.watermark("10:05", now="10:06")
    script.batch([{"at": "09:58"}, {"at": "09:58"}], now="10:07")
    assert new(explained(pipeline, tmp_path, "09:55")) == [[0], [2, 3]]
    assert new(explained(pipeline, tmp_path, "10:00")) == [[1]]


def test_10_how_long_a_bound_waits(tmp_path: Path) -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded("30 seconds"))
    script, pipeline = recorded_script(stream.window(ps.tumbling("5 minutes")).aggregate(n=ps.rows()), str(tmp_path))
    for at in ("10:04:00", "10:05:29.999999", "10:05:30"):
        script.batch([{"at": at}])
    script.batch()
    told = explained(pipeline, tmp_path, "10:00")
    assert new(told) == [[0]]
    assert (told.panes[0].batch, told.complete_at) == (3, parse("10:05"))


def test_12_every_window_an_event_is_in(tmp_path: Path) -> None:
    sliding = by_hand().window(ps.sliding("10 s", every="5 s")).aggregate(n=ps.rows())
    script, pipeline = recorded_script(sliding, str(tmp_path))
    script.batch([{"at": "00:00:07"}, {"at": "00:00:12"}])
    script.end()
    assert [new(explained(pipeline, tmp_path, start)) for start in ("00:00:00", "00:00:05", "00:00:10")] == [
        [[0]], [[0, 1]], [[1]],
    ]  # fmt: skip


def test_13_a_count_is_looked_at_once_a_batch(tmp_path: Path) -> None:
    windowed = by_hand().window(ps.global_window()).trigger(ps.repeat(ps.count(1000)))
    script, pipeline = recorded_script(windowed.accumulating().aggregate(n=ps.rows()), str(tmp_path))
    for _ in range(5):
        script.batch([{"at": "12:00"}] * 700)
    script.end()
    told = explained(pipeline, tmp_path, "global")
    assert [len(pane.new) for pane in told.panes] == [1400, 1400, 700]
    assert new(told)[1] == list(range(1400, 2800))
    assert kinds(told) == [[("", "counted")], [("", "counted")], [("last", "unshown")]]
    assert told.panes[0].because[0].facts == {"new": 1400, "wanted": 1000}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_pane_of_a_case_is_explained_as_it_was_shown(case: Case, tmp_path: Path) -> None:
    script, pipeline = recorded_script(described(case), str(tmp_path))
    script.restart = lambda: None  # type: ignore[method-assign]
    for step in case.steps:
        play_step(script, step)
    replay = replayed(pipeline, tmp_path)
    shown: dict[Any, list[Any]] = {}
    for pane in script.panes:
        facts = (pane.op, pane.index, pane.timing, pane.final, dict(pane.values))
        shown.setdefault((key_texts(replay.plan, pane.key), pane.window), []).append(facts)
    assert shown or not script.panes
    for key, window in shown:
        told = why_window(replay, key, str(window))
        assert isinstance(told, WindowWhy)
        mine = [pane for pane in told.panes if pane.window == window]
        wanted = [facts for facts in shown[key, window] if facts[0] > 0]
        assert [(pane.index, pane.timing, pane.final) for pane in mine] == [facts[1:4] for facts in wanted]
        assert all(pane.because for pane in mine)
        _the_numbers_add_up(script, mine, wanted)


def _the_numbers_add_up(script: Script, mine: list[Any], wanted: list[Any]) -> None:
    """A count of rows is the number of the events that are named; in discarding mode, of those that are new."""
    for pane, facts in zip(mine, wanted, strict=True):
        for name, aggregate in script.plan.aggregates:
            if aggregate.kind == "rows" and aggregate.where is None:
                held = len(pane.new) if script.plan.shown_mode == "discarding" else pane.records
                assert facts[4][name] == held


def test_which_windows_a_key_has(tmp_path: Path) -> None:
    stream = by_hand("team string, at timestamp").key_by("team").window(ps.tumbling("1 minute"))
    script, pipeline = recorded_script(stream.aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"team": "red", "at": "12:00"}, {"team": "red", "at": "12:01"}, {"team": "blue", "at": "12:02"}])
    script.watermark("12:01")
    told = why_window(replayed(pipeline, tmp_path), ("red",), None)
    assert isinstance(told, KeyWhy)
    assert [(window.start, panes) for window, panes in told.windows.items()] == [
        (parse("12:00"), 1), (parse("12:01"), 0),
    ]  # fmt: skip
