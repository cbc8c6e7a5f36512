"""Does `penstock status` say how a run stands from its files alone, and who runs it?"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from dataclasses import astuple, replace
from pathlib import Path

import pytest

import penstock as ps
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.identity import Identity, identity_of
from penstock.checkpoint.lease import take_lease
from penstock.checkpoint.status import note_waiting, standing, waiting_is_over
from penstock.engine.watermarks import ClockState, Spoken, partition_clocks
from penstock.plan.graph import flow_of
from penstock.runtime.batch import Counts, PartitionClock
from penstock.storage.local import CheckpointError, LocalStore
from penstock.types.timestamps import MAX_TIME, parse

NOON = parse("2026-01-01T12:00:00Z")
PLAN = (
    ps.events("at timestamp, v long").event_time("at", watermark=ps.bounded("1 minute"))
    .window(ps.tumbling("5 minutes")).aggregate(total=ps.sum("v")).plan
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "checkpoints" / "totals"))


def made(store: LocalStore) -> Identity:
    """A checkpoint of two partitions, of which one has been silent, after eight batches."""
    identity = identity_of(store, "totals", flow_of((PLAN,)), 4, 4)
    spoken = {
        ("events", "0"): Spoken(newest=NOON, last_batch=7),
        ("events", "1"): Spoken(newest=NOON - 300_000_000, silent_for=120_000_000, last_batch=3),
    }
    state = ClockState(NOON - 60_000_000, NOON + 1_000_000, 8, spoken)
    partitions = [list(astuple(one)) for one in partition_clocks(flow_of((PLAN,)), state)]
    totals = Counts(read=1_234, filtered=10, late=5, quarantined=2)
    write_clock(store, identity.lineage, Clocks(8, state, totals, panes=40, partitions=partitions))
    return identity


def test_what_each_stage_holds_is_said_where_there_are_others_than_windows(store, penstock):
    identity = made(store)
    assert "open windows" in penstock("status", store.root).out
    write_clock(store, identity.lineage, Clocks(9, open_windows=1_504, held={"1: join": 1_500, "2: windows": 4}))
    said = penstock("status", store.root).out
    assert "open windows" not in said
    assert re.search(r"^held +1,500 by stage 1: join, 4 by stage 2: windows$", said, re.MULTILINE)


def test_a_long_name_of_a_partition_is_apart_from_what_is_said_of_it(store, penstock):
    identity = made(store)
    one = PartitionClock("kafka", "flights/0", NOON, NOON - 60_000_000, False, 0)
    other = replace(one, partition="arrivals-of-the-day/11")
    write_clock(store, identity.lineage, Clocks(9, partitions=[list(astuple(one)), list(astuple(other))]))
    said = penstock("status", store.root).out.splitlines()
    places = [line.index("newest event") for line in said if line.startswith("kafka/")]
    assert len(places) == 2
    assert len(set(places)) == 1
    assert "kafka/flights/0 " in "\n".join(said)
    assert "kafka/arrivals-of-the-day/11 newest event" in "\n".join(said)


def test_a_run_that_is_alive(store, penstock):
    identity = made(store)
    take_lease(store)
    said = penstock("status", store.root)
    assert said.code == 0
    for part in ("totals", identity.lineage, f"running: process {os.getpid()} on {socket.gethostname()}", "4 shards",
                 "7, at 2026-01-01 12:00:01 UTC", "2026-01-01 11:59:00, 1 min 1 s behind", "1,234 in, 10 filtered out",
                 "5 rows", "2 rows", "idle: silent for 2 min, nobody waits for it"):  # fmt: skip
        assert part in said.out
    told = json.loads(penstock("status", store.root, "--json").out)
    assert (told["batch"], told["panes"], told["running"], told["behind"]) == (7, 40, True, 61_000_000)
    assert [one["idle"] for one in told["partitions"]] == [False, True]
    assert told["watermark_at"] == "2026-01-01T11:59:00Z"


def test_a_run_that_waits_for_a_sink(store, penstock):
    made(store)
    lease = take_lease(store)
    note_waiting(store, lease.epoch - 1, 8, "an older run waited for something else")
    assert standing(store).waiting is None
    note_waiting(store, lease.epoch, 8, "postgres:db:5432/games#public.totals does not answer")
    said = penstock("status", store.root).out
    assert "UTC: postgres:db:5432/games#public.totals does not answer" in said
    told = json.loads(penstock("status", store.root, "--json").out)["waiting"]
    assert (told["batch"], told["what"][:11]) == (8, "postgres:db")
    assert abs(told["since"] / 1e6 - time.time()) < 60
    waiting_is_over(store)
    assert standing(store).waiting is None
    note_waiting(store, lease.epoch, 8, "it again")
    lease.release()
    assert standing(store).waiting is None, "who has stopped waits for nothing"


def test_a_run_that_was_stopped(store, penstock):
    made(store)
    take_lease(store).release()
    assert "stopped; last run by process" in penstock("status", store.root).out
    assert standing(store).running is False


def test_a_run_that_died(store, penstock, monkeypatch):
    made(store)
    monkeypatch.setattr("penstock.checkpoint.lease.os.getpid", lambda: 2**22 + 1)
    take_lease(store)
    monkeypatch.undo()
    assert "is gone; run it again and it goes on" in penstock("status", store.root).out


def test_a_run_on_another_machine_cannot_be_seen(store, penstock, monkeypatch):
    made(store)
    monkeypatch.setattr("penstock.checkpoint.lease.socket.gethostname", lambda: "elsewhere")
    take_lease(store)
    monkeypatch.undo()
    found = standing(store)
    assert found.running is None
    assert "cannot be seen from here" in penstock("status", store.root).out


def test_a_run_that_has_ended(store, penstock):
    identity = made(store)
    ended = Clocks(9, replace(ClockState(), watermark=MAX_TIME), finished=True)
    write_clock(store, identity.lineage, ended)
    said = penstock("status", store.root).out
    assert "finished: every window is closed" in said
    assert "the end" in said


def test_a_checkpoint_before_its_first_batch(store, penstock):
    identity_of(store, "totals", flow_of((PLAN,)), 4, 4)
    said = penstock("status", store.root).out
    assert "never started" in said
    assert "none yet" in said


def test_what_is_not_a_checkpoint_is_refused_with_the_nearest_one(store, penstock):
    made(store)
    said = penstock("status", store.root.replace("totals", "total"))
    assert said.code == 1
    assert f"did you mean {store.root!r}?" in said.err
    assert f"name one of those in it: {store.root}" in penstock("status", os.path.dirname(store.root)).err
    Path(store.root, "penstock", "identity").unlink()
    Path(store.root, "offsets").mkdir()
    Path(store.root, "offsets", "0").touch()
    assert "not of a Penstock pipeline" in penstock("status", store.root).err


def test_without_spark_only_a_local_disk_is_read():
    with pytest.raises(CheckpointError, match="not on a disk of this machine"):
        standing("s3a://bucket/checkpoint")
