"""What is in PostgreSQL after the way to it, the server or the run has failed; numbers are rows of docs/faults.md."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.delivery import deliver
from penstock.connectors.postgres.sink import Postgres, postgres
from penstock.connectors.sink_errors import Fenced, ForeignLineage, SinkDown, SinkError
from penstock.testing.servers.postgres import database
from tests.unit.connectors.sinks import test_killed as killed
from tests.unit.connectors.sinks.child import expected_answers, expected_panes, main
from tests.unit.connectors.sinks.outputs import PANES, answers, batch_of, every, give, pane, panes, sinks

FIRST = panes(pane("red", 1), pane("blue", 2))
SECOND = panes(pane("red", 3, index=1))
FIRST_PANES = [("blue", 2, 1), ("red", 1, 1)]
BOTH_PANES = [("blue", 2, 1), ("red", 1, 1), ("red", 3, 1)]
NAME = "postgres history"


@pytest.fixture
def sink(folder) -> Postgres:
    """A sink whose history tells how often each batch came."""
    found: Any = sinks(folder)[NAME]
    return found


@pytest.fixture
def by_proxy(sink, server, bad_way) -> Postgres:
    """The same by the bad way."""
    return replace(sink, url=postgres(server.url_of(port=bad_way.port), table="x").url)


def meanwhile(table: pa.Table, happens: Any) -> Iterator[pa.Table]:
    """The rows of a batch in two parts, between which something happens."""
    yield table.slice(0, 1)
    happens()
    yield table.slice(1)


def test_row_3_a_commit_whose_reply_is_lost_is_neither_repeated_nor_forgotten(sink, by_proxy, bad_way):
    with pytest.raises(SinkDown, match="does not answer"):
        give(by_proxy, FIRST, parts=meanwhile(FIRST, bad_way.lose_next_commit))
    assert bad_way.lost == 1
    assert every(sink) == FIRST_PANES, "it was committed"
    assert not give(by_proxy, FIRST), "and is not written again"
    assert give(by_proxy, SECOND, 1, after=0)
    assert every(sink) == BOTH_PANES


def test_row_3_the_reply_that_is_lost_is_that_of_the_batch(sink, by_proxy, bad_way):
    give(by_proxy, FIRST)
    bad_way.lose_next_commit(passing=1)
    with pytest.raises(SinkDown):
        give(by_proxy, SECOND, 1)
    assert every(sink) == BOTH_PANES
    assert not give(by_proxy, SECOND, 1, after=0)


def test_row_3_a_claim_whose_reply_is_lost_is_claimed_again(sink, by_proxy, bad_way):
    bad_way.lose_next_commit()
    with pytest.raises(SinkDown):
        give(by_proxy, FIRST)
    assert bad_way.lost == 1
    assert give(by_proxy, FIRST)
    assert every(sink) == FIRST_PANES


@pytest.mark.parametrize(("delivery", "found"), [("at_least_once", [*FIRST_PANES, *FIRST_PANES]), ("at_most_once", [])])
def test_row_3_the_other_deliveries_mean_what_they_say(delivery, found, sink, by_proxy, bad_way):
    at = meanwhile(FIRST, bad_way.lose_next_commit if delivery == "at_least_once" else bad_way.cut)
    with pytest.raises(SinkDown):
        give(by_proxy, FIRST, parts=at, delivery=delivery)
    give(by_proxy, FIRST, delivery=delivery)
    assert every(sink) == sorted(found, key=repr)


def test_row_3_a_connection_cut_before_the_commit_leaves_nothing(sink, by_proxy, bad_way):
    with pytest.raises(SinkDown):
        give(by_proxy, FIRST, parts=meanwhile(FIRST, bad_way.cut))
    assert every(sink) == []
    assert give(by_proxy, FIRST)
    assert every(sink) == FIRST_PANES


def test_row_11_a_server_that_cannot_be_reached_is_down_and_then_goes_on(sink, by_proxy, bad_way):
    give(by_proxy, FIRST)
    bad_way.shut()
    for _ in range(2):
        with pytest.raises(SinkDown, match="the run goes on by itself"):
            give(by_proxy, SECOND, 1)
    bad_way.reopen()
    assert give(by_proxy, SECOND, 1, after=0)
    assert every(sink) == BOTH_PANES


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_row_11_a_server_killed_in_mid_batch_and_started_again_has_each_batch_once(how, sink, server):
    give(sink, FIRST)
    writers: dict[str, Any] = {}
    many = panes(*(pane(f"team-{number}", number) for number in range(2_000)))
    try:
        with pytest.raises(SinkDown):
            deliver(sink, PANES, writers, batch_of(1, many), meanwhile(many, getattr(server, how)))
        assert writers == {}
        with pytest.raises(SinkDown, match=r"(?i)connection.*refused"):
            give(sink, many, 1)
    finally:
        server.start()
    assert every(sink) == FIRST_PANES
    assert give(sink, many, 1, after=0)
    assert len(every(sink)) == 2_002
    getattr(server, how)()
    server.start()
    assert not give(sink, many, 1, after=0), "what was committed is there after another crash"


def test_row_12_a_slow_way_is_waited_for(sink, by_proxy, bad_way):
    bad_way.delay = 0.02
    began = time.monotonic()
    assert give(by_proxy, FIRST)
    assert time.monotonic() - began > 0.2
    assert every(sink) == FIRST_PANES


@pytest.mark.parametrize("epoch", [1, 2], ids=["its own lost connection", "an older run"])
def test_row_14_an_open_transaction_is_shut_out_and_cannot_commit(epoch, sink, monkeypatch):
    monkeypatch.setattr("penstock.connectors.postgres.writer.GRACE_SECONDS", 0.1)
    zombie = sink.open(PANES)
    zombie.begin("L1", 1)
    zombie.write(batch_of(0, SECOND), [SECOND])
    assert give(sink, FIRST, epoch=epoch)
    with pytest.raises(SinkDown):
        zombie.commit(batch_of(0, SECOND))
    zombie.close()
    if epoch == 2:
        with pytest.raises(Fenced, match="epoch 2 has begun"):
            give(sink, SECOND, epoch=1)
    assert every(sink) == FIRST_PANES
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 1)]


def test_row_14_an_older_run_does_not_shut_out_a_newer_one(sink, monkeypatch):
    monkeypatch.setattr("penstock.connectors.postgres.writer.GRACE_SECONDS", 0.0)
    monkeypatch.setattr("penstock.connectors.postgres.writer.PATIENCE_SECONDS", 0.3)
    newer = sink.open(PANES)
    newer.begin("L1", 2)
    newer.write(batch_of(0, FIRST, epoch=2), [FIRST])
    for old in (sink, replace(sink, takeover=True)):
        with pytest.raises(SinkDown, match="the transaction of another run has held it"):
            give(old, SECOND, epoch=1)
    newer.commit(batch_of(0, FIRST, epoch=2))
    newer.close()
    assert every(sink) == FIRST_PANES


def test_row_14_of_runs_that_begin_at_once_the_newest_epoch_stays(sink, server):
    for lineage in ("L1", "L2", "L3"):
        taking = replace(sink, takeover=True)
        raised = at_once(*(partial(begun, taking, lineage, epoch) for epoch in (3, 1, 4, 2)))
        assert all(isinstance(error, Fenced) for error in raised if error is not None), raised
        assert server.ask(f"SELECT lineage, epoch FROM {sink.schema}.penstock_ledger") == [(lineage, 4)]


def test_row_14_a_run_that_was_stopped_and_woken_writes_nothing(folder, sink):
    """SIGSTOP wherever it is, another run with a newer epoch, SIGCONT."""
    command = [sys.executable, "-m", "tests.unit.connectors.sinks.child", NAME, str(folder), "exactly_once", "1000"]
    process = subprocess.Popen(command, cwd=killed.ROOT, start_new_session=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)  # fmt: skip
    try:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 3:
            pass
        process.send_signal(signal.SIGSTOP)
        reached = len({row for row in every(sink) if row[0] == "team-0"})
        # The batch that it had not committed when it was looked at may be there by now: it is played again.
        main(NAME, str(folder), "exactly_once", reached + 3, reached, 2)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "Fenced" in said.decode() or "SinkDown" in said.decode(), said.decode()
        assert every(sink) == expected_panes(list(range(reached + 3)))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_row_15_of_two_pipelines_that_begin_at_once_one_is_refused_and_the_other_named(sink):
    first, second = (replace(PANES, sink=f"{name}/panes/0") for name in ("mine", "yours"))
    raised = at_once(partial(begun, sink, "L1", 1, first), partial(begun, sink, "L9", 1, second))
    assert sorted(type(error).__name__ for error in raised) == ["ForeignLineage", "NoneType"]
    assert any("belongs to" in str(error) for error in raised)


def test_row_15_an_output_that_moved_cannot_be_written_by_the_run_before(sink):
    old = sink.open(PANES)
    old.begin("L1", 1)
    moved = replace(sink, table=f"{sink.schema}.elsewhere")
    with pytest.raises(ForeignLineage, match="wrote to the table 'scores' before"):
        give(moved, FIRST, epoch=2)
    assert give(replace(moved, takeover=True), FIRST, epoch=2)
    with pytest.raises(Fenced, match="the output is written elsewhere"):
        old.write(batch_of(1, SECOND), [SECOND])
    old.close()
    assert every(sink) == []
    assert every(moved) == FIRST_PANES


@pytest.mark.parametrize("point", killed.POINTS)
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "at_most_once"])
def test_rows_1_and_2_a_run_killed_at_any_point_delivers_as_it_says(delivery, point, folder):
    sink = killed.killed_and_restarted(NAME, folder, delivery, point)
    twice = [2] if (delivery, point) == ("at_least_once", "sink:commit:after") else []
    never = delivery == "at_most_once" and point in ("sink:write", "sink:commit:before")
    assert every(sink) == expected_panes([0, 1, *([] if never else [2]), *twice, 3])
    assert never or answers(sink) == expected_answers(killed.BATCHES)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_row_10_a_full_disk_stops_and_leaves_no_half_batch():
    with database(fsync="off", autovacuum="off") as own:
        sink = postgres(own.url, table="scores", history=True)
        give(sink, FIRST)
        ((path,),) = own.ask("SELECT pg_relation_filepath('scores_history')")
        own.stop()
        file = own.folder / "data" / path
        aside = file.with_name("aside")
        file.rename(aside)
        file.symlink_to("/dev/full")
        own.start()
        with pytest.raises(SinkError, match=r"(?s)No space left on device.*make room on the server's disk") as stopped:
            give(sink, SECOND, 1)
        assert not isinstance(stopped.value, SinkDown)
        own.stop()
        file.unlink()
        aside.rename(file)
        own.start()
        assert every(sink) == FIRST_PANES
        assert give(sink, SECOND, 1, after=0)
        assert every(sink) == BOTH_PANES


def test_a_deleted_ledger_is_noticed(folder, sink, server):
    main(NAME, str(folder), "exactly_once", 2)
    server.ask(f"DROP TABLE {sink.schema}.penstock_ledger")
    with pytest.raises(ForeignLineage, match="no ledger tells which"):
        main(NAME, str(folder), "exactly_once", 3, 2, 2)


def test_readers_see_whole_batches_only(folder, server):
    table = f"{(folder / 'postgres').read_text().split()[1]}.scores"
    command = [sys.executable, "-m", "tests.unit.connectors.sinks.child", "postgres", str(folder), "exactly_once", "60"]
    process = subprocess.Popen(command, cwd=killed.ROOT, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    seen = 0
    with server.connect() as reader:
        while process.poll() is None:
            found = reader.execute(f"SELECT team, points FROM {table} WHERE team IS NOT NULL").fetchall()
            assert len({points - int(team[5:]) for team, points in found}) == 1
            seen += 1
    process.communicate()
    assert seen > 1


def begun(sink: Any, lineage: str, epoch: int, target: Any = PANES) -> None:
    writer = sink.open(target)
    try:
        writer.begin(lineage, epoch)
    finally:
        writer.close()


def at_once(*tasks: Any) -> list[Exception | None]:
    """Run tasks in threads that start together; what each raised."""
    together = threading.Barrier(len(tasks))
    raised: list[Exception | None] = [None] * len(tasks)

    def run(number: int) -> None:
        together.wait()
        try:
            tasks[number]()
        except Exception as error:
            raised[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
