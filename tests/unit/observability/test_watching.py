"""A run is followed as it goes on, and what is held does not grow."""

from __future__ import annotations

import json
from dataclasses import replace

from penstock.humanize import worded
from penstock.observability import journal as recording
from penstock.observability.health import watcher
from penstock.observability.health.watcher import Watching, look
from penstock.observability.journal import Recorder
from penstock.storage.local import LocalStore
from tests.unit.observability.test_attention import CALM, RUNNING, run_of


def followed(root) -> Watching:
    return Watching(LocalStore(str(root)), asked=lambda _: RUNNING)


def test_what_is_new_is_added_and_a_batch_counts_once(tmp_path):
    recorder = Recorder(LocalStore(str(tmp_path)))
    for one in run_of(5):
        recorder.write(one)
    watched = followed(tmp_path)
    assert [one.batch for one in watched.look().observed] == [0, 1, 2, 3, 4]
    recorder.write(replace(CALM, batch=4, wall=1021.0, replayed=True))
    recorder.write(replace(CALM, batch=5, wall=1022.0))
    found = watched.look()
    assert [(one.batch, one.replayed) for one in found.observed][-3:] == [(3, False), (4, True), (5, False)]
    assert [one.about for one in found.concerns] == ["replay"]
    assert watched.look().observed == found.observed


def test_old_files_are_not_read_to_look_at_what_is_new(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SEGMENT_BYTES", 2_000)
    recorder = Recorder(LocalStore(str(tmp_path)))
    for one in run_of(100, 60.0):
        recorder.write(one)
    watched = followed(tmp_path)
    assert [one.batch for one in watched.news()] == list(range(90, 100))
    recorder.write(replace(CALM, batch=100, wall=1080.0))
    assert watched.recorded is not None
    assert [one.batch for one in watched.recorded.news()] == [100]


def test_what_is_held_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(watcher, "MOST", 50)
    recorder = Recorder(LocalStore(str(tmp_path)))
    watched = followed(tmp_path)
    for one in run_of(200, dots=lambda _: [{"partition": "scores/0", "offset": 1}]):
        recorder.write(one)
        held = watched.news()
        assert len(held) <= 50
        assert not any(one.dots for one in held)
    assert held[-1].batch == 199


def test_a_look_is_plain_json():
    found = look(run_of(hot=[["red", 0.5, 0.1]]), RUNNING)
    told = json.loads(json.dumps(worded(found.plain())))
    assert told["situation"]["state"] == "running"
    assert told["hot_keys"] == [{"key": "red", "share": 0.5, "error": 0.1}]
    assert len(told["batches"]) == 20
    assert told["overview"]["events"] == 500
    assert look([], RUNNING).plain()["overview"] is None
