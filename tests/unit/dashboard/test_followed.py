"""What is held of a run is its newest, bounded, each batch once; and a checkpoint that was made anew is another run."""

from __future__ import annotations

import json
import shutil

import pytest

from penstock.checkpoint.status import note_waiting
from penstock.dashboard import feed as following
from penstock.dashboard.feed import Followed
from penstock.dashboard.plane_encoding import compact
from penstock.observability.health.concern import URGENT
from penstock.types.timestamps import MIN_TIME
from tests.browser.observed import Run


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """How it stands is said at every look."""
    monkeypatch.setattr(following, "STANDS_EVERY", 0.0)


def batches(followed: Followed) -> list[int]:
    return [json.loads(one.data)["batch"] for one in followed.batches.values()]


def test_what_is_new_is_told_once_to_each_listener(tmp_path):
    run, followed = Run(tmp_path).batches(3), Followed(str(tmp_path))
    followed.look()
    first = followed.since("", 0, 0, seconds=0)
    assert [json.loads(one)["batch"] for one in first.batches] == [0, 1, 2]
    assert json.loads(first.standing)["batch"] == 2
    run.batch()
    followed.look()
    second = followed.since(first.begun, first.upto, first.stood, seconds=0)
    assert [json.loads(one)["batch"] for one in second.batches] == [3]


def test_it_never_holds_more_than_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "BYTES", 60_000)
    run, followed = Run(tmp_path, clocks=False), Followed(str(tmp_path))
    for _ in range(10):
        run.batches(10)
        followed.look()
        assert followed.size == sum(len(one.data) for one in followed.batches.values()) <= 60_000
    assert batches(followed)[-1] == 99
    assert sum(bool(one.panes) for one in followed.recent) <= following.WITH_PANES
    assert not any(one.dots for one in followed.recent)


def test_a_batch_that_was_run_again_counts_once(tmp_path):
    run, followed = Run(tmp_path).batches(5), Followed(str(tmp_path))
    followed.look()
    told = followed.since("", 0, 0, seconds=0)
    run.number = 4
    run.batch(replayed=True)
    followed.look()
    again = followed.since(told.begun, told.upto, told.stood, seconds=0)
    assert [(json.loads(one)["batch"], json.loads(one)["replayed"]) for one in again.batches] == [(4, True)]
    assert batches(followed) == [0, 1, 2, 3, 4]
    assert [one.batch for one in followed.observed()] == [0, 1, 2, 3, 4]
    assert any("run again" in one["what"] for one in json.loads(followed.standing)["concerns"])


def test_a_checkpoint_that_was_made_anew_is_another_run(tmp_path):
    Run(tmp_path / "run").batches(5)
    followed = Followed(str(tmp_path / "run"))
    followed.look()
    before = followed.since("", 0, 0, seconds=0)
    shutil.rmtree(tmp_path / "run")
    followed.look()
    assert json.loads(followed.standing)["state"] == "starting"
    Run(tmp_path / "run", lineage="2e" * 16).batches(2)
    followed.look()
    followed.look()
    after = followed.since(before.begun, before.upto, before.stood, seconds=0)
    assert after.begun != before.begun
    assert [json.loads(one)["batch"] for one in after.batches] == [0, 1]


def test_a_batch_that_waits_for_a_sink_is_the_first_thing_that_is_said(tmp_path):
    run, followed = Run(tmp_path).batches(3), Followed(str(tmp_path))
    note_waiting(run.store, run.lease.epoch, 3, "the database games does not answer")
    followed.look()
    told = json.loads(followed.standing)
    assert told["concerns"][0]["level"] == URGENT
    assert told["waiting"]["what"] == "the database games does not answer"


def test_an_event_that_was_late_is_no_dot_as_well(tmp_path):
    run = Run(tmp_path)
    while not (one := run.batch()).late:
        pass
    told = compact(one)
    late = {(row["partition"], row["offset"]) for row in told["late"]}
    assert late
    assert not late & {(dot[3], dot[4]) for dot in told["dots"]}
    assert len(told["dots"]) + len(late) == len(one.dots)


def test_infinite_times_are_words_in_how_it_stands(tmp_path):
    run, followed = Run(tmp_path), Followed(str(tmp_path))
    run.batch(watermark=MIN_TIME)
    followed.look()
    assert json.loads(followed.standing)["overview"]["watermark"] == "-inf"
