"""What a reader of the topic finds after each fault; the numbers are those of docs/faults.md."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connectors.delivery import deliver
from penstock.connectors.kafka import ledger, producer
from penstock.connectors.sink_errors import Fenced, ForeignLineage, SinkDown, SinkError
from tests.integration.kafka_sink.checker import QUIET, Verdict, judged, read
from tests.integration.kafka_sink.child import batch_table, ids, main
from tests.unit.connectors.sinks.outputs import PANES, batch_of, give, pane, panes

ROOT = Path(__file__).parents[3]
POINTS = ("sink:begin", "sink:write", "sink:commit:before", "sink:commit:after")
CLEAN = Verdict(0, 0, 0, 0)
ROWS = 40
KILLS = int(os.environ.get("PENSTOCK_KAFKA_KILLS", "8"))


def sent(*batches: int, rows: int = ROWS) -> dict[int, list[str]]:
    """What must be there."""
    return {number: ids(number, rows) for number in batches}


def child(sink: Any, *numbers: int, delivery: str = "exactly_once", kill: str = "") -> subprocess.Popen[bytes]:
    """A process of its own that delivers."""
    words = [sink.servers, sink.topic, delivery, *(str(number) for number in numbers)]
    command = [sys.executable, "-m", "tests.integration.kafka_sink.child", *words]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True,
                            env={**os.environ, "PENSTOCK_KILL_AT": kill}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)  # fmt: skip


def until_taken(sink: Any, number: int, table: Any = None, epoch: int = 1, seconds: float = 60) -> bool:
    """Deliver as a run does: again and again while the sink is down."""
    table = batch_table(number, ROWS) if table is None else table
    end = time.monotonic() + seconds
    while True:
        try:
            return give(sink, table, number, epoch=epoch)
        except SinkDown:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def killed(sink: Any, delivery: str, point: str) -> None:
    """A process killed at a point of batch 2, and the run after it, which plays batch 2 again."""
    process = child(sink, 4, delivery=delivery, kill=f"{point}@2")
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, said.decode()
    main(sink.servers, sink.topic, delivery, 4, 2, 2)


@pytest.mark.parametrize("point", POINTS)
def test_example_18_and_rows_1_and_2_exactly_once_after_a_kill_at_each_point(to, point):
    """Worked example 18: killed before, while and after the broker has the batch, it is there once."""
    sink = to()
    killed(sink, "exactly_once", point)
    assert judged(sink.servers, sink.topic, sent(0, 1, 2, 3)) == CLEAN


@pytest.mark.parametrize("point", ["sink:write", "sink:commit:after"])
def test_example_18_and_row_1_at_least_once_loses_nothing(to, point):
    """Worked example 18: the batch that was killed is there twice at worst."""
    sink = to()
    killed(sink, "at_least_once", point)
    verdict = judged(sink.servers, sink.topic, sent(0, 1, 2, 3))
    assert (verdict.lost, verdict.aborted) == (0, 0)
    assert verdict.doubled == (ROWS if point == "sink:commit:after" else 0)


@pytest.mark.parametrize("point", ["sink:write", "sink:commit:after"])
def test_example_18_and_row_1_at_most_once_doubles_nothing(to, point):
    """Worked example 18: the batch that was killed is missing at worst."""
    sink = to()
    killed(sink, "at_most_once", point)
    verdict = judged(sink.servers, sink.topic, sent(0, 1, 2, 3))
    assert (verdict.doubled, verdict.torn, verdict.aborted) == (0, 0, 0)
    assert verdict.lost == (ROWS if point == "sink:write" else 0)


def test_row_1_kills_at_any_moment_lose_double_and_tear_nothing(to):
    """Each life plays the last batch that was begun; if that was taken, it is that one or the next."""
    sink, chance, last, taken = to(), random.Random(7), 0, False
    for life in range(KILLS):
        process = child(sink, 10_000, last + (chance.choice([0, 1]) if taken else 0), life + 1)
        assert process.stdout is not None
        lines, wanted = [], chance.randrange(1, 6)
        while sum(line.startswith(b"taken") for line in lines) < wanted:
            lines.append(process.stdout.readline())
            assert lines[-1], process.communicate()[1].decode()
        time.sleep(chance.uniform(0, 0.15))
        process.kill()
        rest, said = process.communicate()
        assert said == b""
        *_, (word, number) = (line.split() for line in [*lines, *rest.splitlines()] if line.strip())
        last, taken = int(number), word == b"taken"
    main(sink.servers, sink.topic, "exactly_once", last + 3, last, KILLS + 1)
    assert judged(sink.servers, sink.topic, sent(*range(last + 3))) == CLEAN


@pytest.mark.parametrize("then", ["silence", "close"])
def test_row_3_a_commit_whose_reply_is_lost_is_neither_repeated_nor_forgotten(to, proxy, monkeypatch, then):
    monkeypatch.setattr(producer, "COMMIT_SECONDS", 3.0)
    sink = to(servers=proxy.servers)
    until_taken(sink, 0)
    writers = begun(sink)
    proxy.lose("reply", then)
    if then == "silence":
        with pytest.raises(SinkDown):
            deliver(sink, PANES, writers, batch_of(1, batch_table(1, ROWS)), [batch_table(1, ROWS)])
        proxy.heal()
        assert not until_taken(sink, 1), "the ledger has it"
    else:
        # The client asks the broker again by itself: the same transaction cannot be ended twice.
        assert deliver(sink, PANES, writers, batch_of(1, batch_table(1, ROWS)), [batch_table(1, ROWS)])
    closed(writers)
    assert proxy.lost == 1
    assert judged(sink.servers, sink.topic, sent(0, 1)) == CLEAN


def test_row_3_a_commit_that_never_arrived_is_written_once(to, proxy, monkeypatch):
    monkeypatch.setattr(producer, "COMMIT_SECONDS", 3.0)
    sink = to(servers=proxy.servers)
    until_taken(sink, 0)
    writers = begun(sink)
    proxy.lose("request")
    with pytest.raises(SinkDown):
        deliver(sink, PANES, writers, batch_of(1, batch_table(1, ROWS)), [batch_table(1, ROWS)])
    proxy.heal()
    assert until_taken(sink, 1), "it was not committed"
    assert judged(sink.servers, sink.topic, sent(0, 1)) == CLEAN


def begun(sink: Any) -> dict[str, Any]:
    """Writers that have claimed the topic, so that the next transaction to end is that of a batch."""
    writer = sink.open(PANES)
    writer.begin("L1", 1)
    return {PANES.sink: writer}


def closed(writers: dict[str, Any]) -> None:
    for writer in writers.values():
        writer.close()


def test_row_11_a_broker_that_dies_in_the_middle_of_a_batch_and_comes_back(to, broker):
    sink = to()
    until_taken(sink, 0)
    many = batch_table(1, 3_000)
    restarting: list[threading.Thread] = []

    def parts():
        yield many.slice(0, 1_500)
        if not restarting:
            broker.stop(signal.SIGKILL)
            restarting.append(threading.Thread(target=broker.start))
            restarting[0].start()
        yield many.slice(1_500)

    def attempt() -> bool:
        return give(sink, many, 1, parts=parts())

    end = time.monotonic() + 90
    while True:
        try:
            attempt()
            break
        except SinkDown:
            assert time.monotonic() < end
            time.sleep(0.5)
    restarting[0].join()
    assert not until_taken(sink, 1, many)
    assert until_taken(sink, 2)
    assert judged(sink.servers, sink.topic, {**sent(0, 2), 1: ids(1, 3_000)}) == CLEAN


def test_row_11_a_broker_that_is_away_is_said_to_be_down(to, monkeypatch):
    monkeypatch.setattr(producer, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(ledger, "ANSWER_SECONDS", 0.5)
    with pytest.raises(SinkDown, match=r"kafka:127.0.0.1:1#away does not answer"):
        give(to(topic="away", servers="127.0.0.1:1"), batch_table(0, 1))


def test_row_14_a_zombie_inside_an_open_transaction_never_gets_a_row_in(to):
    """SIGSTOP after half of the rows of batch 2 were sent; the successor plays it; SIGCONT."""
    sink = to()
    until_taken(sink, 0)
    until_taken(sink, 1)
    zombie = child(sink, 3, 2, 1, ROWS, 1)
    try:
        assert zombie.stdout is not None
        assert [zombie.stdout.readline() for _ in range(2)] == [b"begun 2\n", b"open\n"]
        zombie.send_signal(signal.SIGSTOP)
        main(sink.servers, sink.topic, "exactly_once", 4, 2, 2)
        zombie.send_signal(signal.SIGCONT)
        _, said = zombie.communicate(timeout=60)
        assert zombie.returncode != 0
        assert "Fenced" in said.decode()
        main(sink.servers, sink.topic, "exactly_once", 5, 4, 2)
        assert judged(sink.servers, sink.topic, sent(0, 1, 2, 3, 4)) == CLEAN
        raw = read(sink.servers, sink.topic, "read_uncommitted")
        assert len(raw) == 5 * ROWS + ROWS // 2, "its rows are in the log, and aborted"
    finally:
        if zombie.poll() is None:
            zombie.kill()
            zombie.communicate()


def test_row_14_a_zombie_that_shuts_the_living_run_out_is_refused_and_the_batch_is_written_once(to):
    sink = to()
    until_taken(sink, 0)
    zombie = begun(sink)[PANES.sink]
    until_taken(sink, 1, epoch=2)
    table = batch_table(2, ROWS)

    def parts():
        yield table.slice(0, 10)
        with pytest.raises(Fenced, match="epoch 2 has begun"):
            zombie.begin("L1", 1)
        yield table.slice(10)

    with pytest.raises(SinkDown, match="has a newer producer"):
        give(sink, table, 2, epoch=2, parts=parts())
    zombie.close()
    assert until_taken(sink, 2, epoch=2)
    assert judged(sink.servers, sink.topic, sent(0, 1, 2)) == CLEAN


def test_row_14_a_run_that_is_refused_at_its_start_does_not_disturb_the_living_one(to):
    sink = to()
    table = batch_table(0, ROWS)

    def parts():
        yield table.slice(0, 10)
        with pytest.raises(Fenced):
            give(sink, table, 0, epoch=1)
        yield table.slice(10)

    assert give(sink, table, 0, epoch=2, parts=parts())
    assert judged(sink.servers, sink.topic, sent(0)) == CLEAN


def test_row_15_two_pipelines_on_one_topic_are_refused_also_if_they_start_at_once(to):
    sink = to()
    said: dict[str, Any] = {}

    def run(name: str) -> None:
        target = replace(PANES, sink=f"{name}/panes/0")
        for _ in range(50):
            try:
                said[name] = give(sink, panes(pane(name, 1)), target=target, lineage=name)
                return
            except SinkDown:
                time.sleep(0.05)
            except ForeignLineage as error:
                said[name] = error
                return

    both = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    winner = next(name for name, what in said.items() if what is True)
    loser = next(name for name in said if name != winner)
    assert isinstance(said[loser], ForeignLineage)
    assert f"belongs to {winner}/panes/0 of lineage {winner}" in str(said[loser])
    assert len(read(sink.servers, sink.topic)) == 1


def test_another_sinks_open_transaction_in_the_ledger_does_not_hide_what_was_committed(to, monkeypatch):
    """The ledger of ours is beyond the last stable offset: it is waited for, not taken for missing."""
    monkeypatch.setattr(ledger, "ANSWER_SECONDS", 2.0)
    sink = to(progress_topic="shared-progress")
    until_taken(sink, 0)
    writers = begun(sink)
    other = Producer({"bootstrap.servers": sink.servers, "transactional.id": "other", "log_level": 0, "logger": QUIET})
    other.init_transactions(10)
    other.begin_transaction()
    other.produce("shared-progress", b"{}", b"another-topic", 0)
    other.flush(10)
    table = batch_table(1, ROWS)
    writer = writers[PANES.sink]
    writer.write(batch_of(1, table), [table])
    writer.commit(batch_of(1, table))
    with pytest.raises(SinkDown, match="a transaction of another sink is open in it"):
        give(sink, table, 1)
    other.abort_transaction(10)
    assert not until_taken(sink, 1)
    writer.close()
    assert judged(sink.servers, sink.topic, sent(0, 1)) == CLEAN


def test_a_batch_that_takes_longer_than_its_transaction_stops_and_says_what_to_change(to):
    sink = to(transaction_timeout="1 second")
    table = batch_table(0, ROWS)

    def parts():
        for start in range(0, ROWS):
            yield table.slice(start, 1)
            time.sleep(0.1)

    with pytest.raises(SinkError, match="open for longer than 1 second") as caught:
        give(sink, table, parts=parts())
    assert not isinstance(caught.value, SinkDown)
    assert read(sink.servers, sink.topic) == []


def test_the_brokers_own_limit_of_a_transaction_is_told(to):
    with pytest.raises(SinkError, match="refuses a transaction_timeout of 1 hour"):
        give(to(transaction_timeout="1 hour"), batch_table(0, 1))


def test_the_ledger_is_read_on_from_where_it_was_read_to(to):
    """Forty batches of one writer: markers are passed over, and nothing is read twice."""
    sink, writers = to(), {}
    for number in range(40):
        table = batch_table(number, 3)
        assert deliver(sink, PANES, writers, batch_of(number, table), [table])
    progress = writers[PANES.sink].progress
    assert progress.found[sink.topic].ledger.batch == 38
    closed(writers)
    assert judged(sink.servers, sink.topic, {number: ids(number, 3) for number in range(40)}) == CLEAN
