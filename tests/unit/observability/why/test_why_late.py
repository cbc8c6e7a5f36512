"""Why an event was late: by how much, what drove the watermark, and what would have saved it, tried on the engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, strategies as st

import penstock as ps
from penstock.observability.why.event_fate import EventWhy, why_event
from penstock.observability.why.text import lines
from penstock.observability.why.watermark_drivers import AHEAD, ASIDE, ENDED, SAID, UNKNOWN
from penstock.testing import Script
from penstock.testing.recording import recorded_script
from penstock.types.timestamps import MAX_TIME, parse
from tests.unit.observability.why.test_why_panes import by_hand, replayed

SECOND = 1_000_000


def counted(delay: Any = "20 seconds", lateness: Any = "0", **more: Any) -> ps.Panes:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded(delay, **more))
    windows = stream.window(ps.tumbling("30 seconds"), lateness=lateness)
    return windows.accumulating().aggregate(n=ps.rows())


def played(folder: Path, panes: ps.Panes, *batches: dict[str, Any]) -> ps.Pipeline:
    script, pipeline = recorded_script(panes, str(folder))
    for batch in batches:
        rows = [{"at": at, "@partition": partition} for partition, times in batch["rows"].items() for at in times]
        script.batch(rows, now=batch["now"])
    return pipeline


def why(pipeline: ps.Pipeline, folder: Path, event: str) -> EventWhy:
    return why_event(replayed(pipeline, folder), event)


def test_its_own_partition_was_ahead(tmp_path: Path) -> None:
    pipeline = played(
        tmp_path, counted(),
        {"now": "12:01:00", "rows": {"a": ["12:00:10", "12:00:55"], "b": ["12:01:00"]}},
        {"now": "12:01:10", "rows": {"a": ["12:00:29"]}},
    )  # fmt: skip
    told = why(pipeline, tmp_path, "a/2")
    assert (told.fate, told.batch, told.watermark) == ("late", 1, parse("12:00:35"))
    assert told.late_by == 6 * SECOND
    assert [place.window.start for place in told.places] == [parse("12:00")]
    assert told.driver is not None
    assert told.driver.kind == AHEAD
    assert (told.driver.batch, told.driver.slowest) == (1, told.driver.own)
    assert told.newest is not None
    assert (told.newest.offset, told.newest.event_time) == (1, parse("12:00:55"))
    assert told.saves is not None
    assert (told.saves.delay, told.saves.lateness, told.saves.idle) == (25 * SECOND, 5 * SECOND, None)
    said = "\n".join(lines(told))
    assert "late: 6 seconds behind W; missed 12:00:00 to 12:00:30" in said
    assert "a delay of more than 25 seconds, or a lateness of more than 5 seconds" in said


def test_another_partition_drove_it_while_its_own_stepped_aside(tmp_path: Path) -> None:
    pipeline = played(
        tmp_path, counted(),
        {"now": "12:00:20", "rows": {"a": ["12:00:10"], "b": ["12:00:10"]}},
        {"now": "12:01:30", "rows": {"b": ["12:01:20"]}},
        {"now": "12:01:40", "rows": {"a": ["12:00:11"]}},
    )  # fmt: skip
    told = why(pipeline, tmp_path, "events/a/1")
    assert told.driver is not None
    assert told.driver.kind == ASIDE
    assert told.driver.slowest is not None
    assert told.driver.slowest.partition == "b"
    assert told.saves is not None
    assert told.saves.idle == 70 * SECOND
    assert "had been silent for 1 minute 10 seconds and stepped aside; events/b drove W" in "\n".join(lines(told))


def test_a_partition_that_was_not_known_yet(tmp_path: Path) -> None:
    pipeline = played(
        tmp_path, counted(),
        {"now": "12:01:00", "rows": {"b": ["12:01:00"]}},
        {"now": "12:01:10", "rows": {"a": ["12:00:29"]}},
    )  # fmt: skip
    told = why(pipeline, tmp_path, "a/0")
    assert told.driver is not None
    assert told.driver.kind == UNKNOWN


def test_the_end_of_the_input_and_a_watermark_that_is_given(tmp_path: Path) -> None:
    script, pipeline = recorded_script(by_hand().window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"at": "12:00"}])
    script.watermark("12:05")
    script.batch([{"at": "12:01"}])
    script.watermark("+inf")
    script.batch([{"at": "12:09"}])
    said, ended = why(pipeline, tmp_path, "0/1"), why(pipeline, tmp_path, "0/2")
    assert said.driver is not None
    assert said.driver.kind == SAID
    assert said.saves is not None
    assert (said.saves.delay, said.saves.lateness) == (None, parse("12:05") - parse("12:02"))
    assert ended.driver is not None
    assert (ended.driver.kind, ended.watermark) == (ENDED, MAX_TIME)
    assert "late: for ever behind W" not in "\n".join(lines(ended))
    assert "nothing would have saved it" in "\n".join(lines(ended))


def test_an_event_that_is_not_late(tmp_path: Path) -> None:
    sliding = by_hand().window(ps.sliding("10 s", every="5 s")).aggregate(n=ps.rows())
    script, pipeline = recorded_script(sliding, str(tmp_path))
    script.batch([{"at": "00:00:01"}])
    script.watermark("00:00:11")
    script.batch([{"at": "00:00:07"}])
    told = why(pipeline, tmp_path, "0/1")
    assert told.fate == "taken"
    assert [(place.window.start, place.taken) for place in told.places] == [(0, False), (5 * SECOND, True)]
    said = "\n".join(lines(told))
    assert "not late: 4 seconds behind W, but taken by 00:00:05 to 00:00:15" in said
    assert "too late for 00:00:00 to 00:00:10, which had expired" in said


def test_filtered_quarantined_and_undecoded_events(tmp_path: Path) -> None:
    stream = ps.events("v long, at timestamp").where("v > 0").event_time("at", watermark=ps.bounded("0"))
    counts = stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows())
    script, pipeline = recorded_script(counts, str(tmp_path))
    script.batch([{"v": 0, "at": "12:00"}, {"v": 1, "at": None}, {"v": "x", "at": "12:00"}, {"v": 1, "at": "12:00"}])
    fates = [why(pipeline, tmp_path, f"0/{offset}") for offset in range(4)]
    assert [one.fate for one in fates] == ["filtered", "quarantined", "quarantined", "taken"]
    assert fates[1].reason == "event_time: event time is null"
    assert fates[2].reason.startswith("decode: column 'v'")


@pytest.mark.parametrize(("event", "said"), [
    ("0/99", "there is no event at events/0/99"), ("7", "'7' is not the place of an event"),
    ("0/-1", "is not the place of an event"), ("9/0", "there is no event at events/9/0"),
])  # fmt: skip
def test_what_is_not_there_is_said(event: str, said: str, tmp_path: Path) -> None:
    pipeline = played(tmp_path, counted(), {"now": "12:01:00", "rows": {"0": ["12:00:10"]}})
    with pytest.raises(ps.PenstockError, match=said):
        why(pipeline, tmp_path, event)


STREAMS = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 300)), max_size=5), min_size=2, max_size=8
)  # fmt: skip


@given(STREAMS, st.integers(0, 40), st.integers(0, 30))
def test_what_would_have_saved_it_does(stream: list[list[tuple[str, int]]], delay: int, lateness: int) -> None:
    """One microsecond more than what is said saves the event, and exactly that does not."""
    with TemporaryDirectory() as folder:
        script, pipeline = recorded_script(counted(timedelta(seconds=delay), timedelta(seconds=lateness)), folder)
        offsets = _play(script, stream)
        late = {(one.partition, offset): offset for one, offset in _late(script, offsets)}
        for partition, offset in list(late)[:3]:
            told = why(pipeline, Path(folder), f"{partition}/{offset}")
            assert told.fate == "late"
            assert told.saves is not None
            assert told.saves.delay is not None
            for more in (0, 1):
                slower = timedelta(microseconds=told.saves.delay + more)
                patient = timedelta(microseconds=told.saves.lateness + more)
                for panes in (counted(slower, timedelta(seconds=lateness)), counted(timedelta(seconds=delay), patient)):
                    again = Script(panes)
                    places = [(one.partition, at) for one, at in _late(again, _play(again, stream))]
                    assert ((partition, offset) in places) is (more == 0)


def _play(script: Script, stream: list[list[tuple[str, int]]]) -> dict[tuple[str, int], list[int]]:
    """Play a stream, each second its own event time; the offsets of events by partition and time."""
    held: dict[tuple[str, int], list[int]] = {}
    at: dict[str, int] = {}
    for number, batch in enumerate(stream):
        rows = []
        for partition, second in batch:
            held.setdefault((partition, second), []).append(at.setdefault(partition, 0))
            at[partition] += 1
            rows.append({"at": second * SECOND, "@partition": partition})
        script.batch(rows, now=(300 + 30 * number) * SECOND)
    return held


def _late(script: Script, offsets: dict[tuple[str, int], list[int]]) -> list[tuple[Any, int]]:
    """Late events with their offsets, where only one event has that partition and time."""
    places = ((one, offsets[one.partition, one.event_time // SECOND]) for one in script.late)
    return [(one, found[0]) for one, found in places if len(found) == 1]
