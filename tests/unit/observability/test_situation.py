"""Whether a run is at work, what it waits for and why it failed is read from beside its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.checkpoint.checksummed_json import sealed
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.identity import FILE
from penstock.checkpoint.lease import Lease, take_lease
from penstock.checkpoint.status import note_waiting, waiting_is_over
from penstock.errors import DataError
from penstock.observability.health.run_state import situation
from penstock.observability.last_error import FOLDER, say_failed
from penstock.storage.local import LocalStore


@pytest.fixture
def run(tmp_path) -> tuple[LocalStore, Lease]:
    """A checkpoint that this process runs; its last batch is 6."""
    store = LocalStore(str(tmp_path))
    store.create(FILE, sealed({"name": "scores", "lineage": "abc", "shards": 2, "binding": {}}))
    write_clock(store, "abc", Clocks(7))
    return store, take_lease(store)


def test_a_run_at_work_and_one_that_was_stopped(run):
    store, lease = run
    found = situation(store.root)
    assert (found.state, found.alive, found.batch, found.name) == ("running", True, 6, "scores")
    assert found.who.startswith("process ")
    assert not found.ended
    lease.release()
    assert situation(store).state == "stopped"


def test_what_a_batch_waits_for_is_told_until_it_is_served(run):
    store, lease = run
    note_waiting(store, lease.epoch, 7, "the server does not answer")
    found = situation(store.root).waiting
    assert found is not None
    assert (found.batch, found.what) == (7, "the server does not answer")
    waiting_is_over(store)
    assert situation(store.root).waiting is None
    lease.release()


def test_why_a_run_failed_is_told_of_that_start_alone(run):
    store, lease = run
    say_failed(store, lease.epoch, DataError("a", "b", "c"))
    lease.release()
    found = situation(store.root)
    assert found.state == "failed"
    assert found.failure is not None
    assert (found.failure.what, found.failure.why, found.failure.instead) == ("a", "b", "c")
    again = take_lease(store)
    assert situation(store.root).state == "running"
    say_failed(store, again.epoch, ValueError("x" * 10_000))
    again.release()
    told = situation(store.root).failure
    assert told is not None
    assert told.what.startswith("ValueError: xxx")
    assert len(told.what) == 2_000
    assert len(list(Path(store.root, FOLDER).iterdir())) == 1


def test_what_was_cut_off_is_left_out(run):
    store, lease = run
    store.create(f"{FOLDER}/waiting-000000000007", b'{"batch": 7')
    store.create(f"{FOLDER}/failed-000000001", b"[]")
    found = situation(store.root)
    assert (found.waiting, found.failure) == (None, None)
    lease.release()
