"""What is written beside a checkpoint is read again: while it grows, after a crash, and not without end."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.observability import journal as recording
from penstock.observability.journal import FOLDER, Recorded, Recorder, latest_of_each, plane_of
from penstock.observability.observation import Observation
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED
from penstock.storage.local import LocalStore

ONE = Observation(0, 10, 0.0, 1.0, 1.0, 5, [0])


class Elsewhere:
    """A store whose files cannot grow, as those of an object store."""

    def __init__(self, root: Path) -> None:
        self.root, self.held = "s3://somewhere", LocalStore(str(root))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)


def written(root: Path, *numbers: int, recorder: Recorder | None = None) -> Recorder:
    made = recorder or Recorder(LocalStore(str(root)))
    for number in numbers:
        made.write(replace(ONE, batch=number, now=10 * number))
    return made


def test_news_are_told_once(tmp_path):
    read = Recorded.at(str(tmp_path))
    assert read.news() == []
    recorder = written(tmp_path, 0, 1)
    assert [one.batch for one in read.news()] == [0, 1]
    assert read.news() == []
    written(tmp_path, 2, recorder=recorder)
    assert [one.batch for one in read.news()] == [2]


def test_a_line_that_was_cut_off_by_a_crash_is_left_out(tmp_path):
    written(tmp_path, 0, 1)
    (file,) = (tmp_path / FOLDER).iterdir()
    with open(file, "ab") as half:
        half.write(b'{"version": 1, "bat')
    read = Recorded.at(str(tmp_path))
    assert [one.batch for one in read.news()] == [0, 1]
    with open(file, "ab") as rest:
        rest.write(b"\nnonsense\n")
    assert read.news() == []


def test_a_batch_that_is_run_again_counts_once(tmp_path):
    written(tmp_path, 0, 1)
    Recorder(LocalStore(str(tmp_path))).write(replace(ONE, batch=1, replayed=True))
    told = latest_of_each(Recorded.at(str(tmp_path)).news())
    assert [(one.batch, one.replayed) for one in told] == [(0, False), (1, True)]


def test_the_oldest_files_may_be_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SEGMENT_BYTES", 5_000)
    recorder = written(tmp_path, *range(100))
    read = Recorded.at(str(tmp_path))
    read.begin_with(10_000)
    seen = [one.batch for one in read.news()]
    assert seen == list(range(seen[0], 100))
    assert 5 < len(seen) < 60
    written(tmp_path, 100, recorder=recorder)
    assert [one.batch for one in read.news()] == [100]


def test_files_are_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SEGMENT_BYTES", 1_500)
    written(tmp_path, *range(500))
    files = sorted((tmp_path / FOLDER).iterdir())
    assert len(files) <= recording.SEGMENTS
    assert sum(file.stat().st_size for file in files) < recording.SEGMENTS * 1_500
    assert Recorded.at(str(tmp_path)).news()[-1].batch == 499


def test_where_files_cannot_grow_they_are_written_now_and_then(tmp_path, monkeypatch):
    recorder = written(tmp_path, 0, 1, recorder=Recorder(Elsewhere(tmp_path)))
    assert Recorded.at(str(tmp_path)).news() == []
    monkeypatch.setattr(recording, "EVERY_SECONDS", 0.0)
    written(tmp_path, 2, recorder=recorder)
    assert [one.batch for one in Recorded.at(str(tmp_path)).news()] == [0, 1, 2]
    monkeypatch.undo()
    written(tmp_path, 3, recorder=recorder).flush()
    assert [one.batch for one in Recorded.at(str(tmp_path)).news()] == [0, 1, 2, 3]


def test_what_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "penstock").write_text("a file where a folder should be")
    recorder = written(tmp_path, 0)
    assert recorder.failed is not None
    assert "batch 0 could not be observed" in recorder.failed


def test_what_could_not_be_written_is_counted_by_the_next(tmp_path):
    (tmp_path / "penstock").write_text("a file where a folder should be")
    recorder = written(tmp_path, 0, 1)
    assert recorder.missed == 2
    (tmp_path / "penstock").unlink()
    written(tmp_path, 2, recorder=recorder)
    assert (recorder.missed, recorder.failed) == (0, None)


def test_half_a_line_does_not_spoil_the_next(tmp_path, monkeypatch):
    recorder = written(tmp_path, 0)
    whole = os.write
    monkeypatch.setattr(os, "write", lambda number, line: whole(number, line[:20]))
    written(tmp_path, 1, recorder=recorder)
    assert recorder.failed == "batch 1 could not be observed: [Errno 28] the disk is full"
    monkeypatch.undo()
    time.sleep(0.002)
    written(tmp_path, 2, recorder=recorder)
    assert [one.batch for one in Recorded.at(str(tmp_path)).news()] == [0, 2]


def test_the_plane_knows_what_became_of_an_event():
    dot = {"partition": "scores/0", "offset": 7, "event_time": 3, "key": "red", "text": "5"}
    pane = {"stage": 0, "key": "red", "start": 0, "end": 10, "index": 0, "timing": "on_time", "final": True, "op": 1,
            "text": "5"}  # fmt: skip
    seen = replace(ONE, dots=[dot, {**dot, "offset": 8}], late=[{**dot, "stage": 0, "why": "expired"}], panes=[pane],
                   bad=[{"partition": "scores/0", "offset": 9, "why": "no time", "text": "{}"}])  # fmt: skip
    plane = plane_of([seen], "scores")
    assert [(one.offset, one.fate, one.why) for one in plane.dots] == [
        (7, LATE, "expired"), (8, COUNTED, ""), (9, QUARANTINED, "no time"),
    ]  # fmt: skip
    assert [(one.key, one.text, one.now) for one in plane.panes] == [("red", "5", 10)]
    assert plane_of([seen], key="blue").panes == ()


@pytest.mark.parametrize("line", [b"[]", b"{}", b"\xff", b'{"batch": 1}'])
def test_lines_of_other_versions_are_left_out(tmp_path, line):
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "000000000000-0.jsonl").write_bytes(line + b"\n")
    assert Recorded.at(str(tmp_path)).news() == []
