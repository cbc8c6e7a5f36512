"""What happens when a commit fails, and nobody knows whether it happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.connectors import sink_errors
from penstock.connectors.delivery import deliver
from penstock.connectors.memory import memory
from penstock.connectors.sink_errors import Fenced, ForeignLineage, OutcomeUnknown, ReplayDiverged, SinkBusy, SinkError
from penstock.connectors.sqlite import sqlite
from tests.unit.connectors.sinks.outputs import PANES, answers, batch_of, every, give, pane, panes, sinks, stored

TABLE = panes(pane("red", 1), pane("blue", 2))
NAMES = ("sqlite history", "duckdb history", "parquet", "memory")


class Broken:
    """A sink whose commits break: `before` they happen, or `after`; and which then cannot be opened, if `gone`."""

    ledgered = True

    def __init__(self, sink: Any, when: str, gone: bool = False) -> None:
        self.sink, self.when, self.gone = sink, when, gone
        self.place, self.opened, self.commits = sink.place, 0, 0

    def open(self, target: Any) -> Any:
        self.opened += 1
        if self.gone and self.opened > 1:
            raise ConnectionError("still away")
        writer = self.sink.open(target)
        inner = writer.commit

        def commit(batch: Any) -> None:
            self.commits += 1
            if self.when == "after":
                inner(batch)
            raise ConnectionError("the reply was lost")

        writer.commit = commit
        return writer


@pytest.fixture(params=NAMES)
def sink(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A sink of each kind."""
    return sinks(tmp_path)[request.param]


def test_a_commit_that_happened_is_found_in_the_ledger(sink):
    broken = Broken(sink, "after")
    assert give(broken, TABLE)
    assert broken.commits == 1
    assert every(sink) == [("blue", 2, 1), ("red", 1, 1)]


def test_a_commit_that_did_not_happen_is_not_tried_again_blindly(sink):
    broken = Broken(sink, "before")
    with pytest.raises(ConnectionError, match="the reply was lost"):
        give(broken, TABLE)
    assert broken.commits == 1
    assert give(sink, TABLE), "a second delivery reads the ledger first, and writes"
    assert every(sink) == [("blue", 2, 1), ("red", 1, 1)]


def test_an_outcome_that_cannot_be_looked_up_is_said_to_be_unknown(sink):
    with pytest.raises(OutcomeUnknown, match="its ledger cannot be read: still away"):
        give(Broken(sink, "after", gone=True), TABLE)
    assert not give(sink, TABLE)


def test_at_least_once_lets_a_failed_commit_be_played_again(sink):
    with pytest.raises(ConnectionError):
        give(Broken(sink, "after"), TABLE, delivery="at_least_once")
    give(sink, TABLE, delivery="at_least_once")
    assert len(every(sink)) == 4


def test_a_failed_writer_is_replaced(tmp_path):
    sink, writers = sqlite(tmp_path / "a.db", table="scores"), {}

    def failing():
        yield TABLE
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        deliver(sink, PANES, writers, batch_of(0, TABLE), failing())
    assert writers == {}
    assert deliver(sink, PANES, writers, batch_of(0, TABLE), iter([TABLE]))
    assert deliver(sink, PANES, writers, batch_of(1, TABLE), iter([TABLE]))
    writers.popitem()[1].close()
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 1)]


def test_sqlite_that_is_locked_says_so(tmp_path, monkeypatch):
    import sqlite3

    monkeypatch.setattr("penstock.connectors.sqlite.BUSY_SECONDS", 0.05)
    sink = sqlite(tmp_path / "a.db", table="scores")
    give(sink, TABLE)
    other = sqlite3.connect(sink.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SinkBusy, match="is locked by another process"):
        give(sink, TABLE, 1)
    other.close()
    assert give(sink, TABLE, 1)


def test_duckdb_that_another_process_holds_says_so(tmp_path):
    import subprocess
    import sys

    from penstock.connectors.duckdb import duckdb

    sink = duckdb(tmp_path / "a.duckdb", table="scores")
    hold = f"import duckdb; c = duckdb.connect({sink.path!r}); print('held', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(SinkBusy, match="is locked by another process"):
        give(sink, TABLE)
    process.communicate(b"\n")
    assert give(sink, TABLE)


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_an_output_that_moves_to_another_table_is_refused(name, tmp_path):
    sink: Any = sinks(tmp_path)[name]
    give(sink, TABLE)
    moved = replace(sink, table="elsewhere")
    with pytest.raises(ForeignLineage, match="wrote to the table 'scores' before"):
        give(moved, TABLE, 1)
    assert give(replace(moved, takeover=True), TABLE, 1, after=0)
    assert len(stored(moved, "elsewhere")) == 2


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_a_run_whose_output_has_moved_writes_nothing_any_more(name, tmp_path):
    sink: Any = sinks(tmp_path)[name]
    old = sink.open(PANES)
    old.begin("L1", 1)
    assert give(replace(sink, table="elsewhere", takeover=True), TABLE, epoch=2)
    with pytest.raises(Fenced, match="the output is written elsewhere"):
        old.write(batch_of(0, TABLE), [TABLE])
    old.close()
    assert answers(sink) == []


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_two_outputs_of_one_pipeline_share_a_file(name, tmp_path):
    sink: Any = sinks(tmp_path)[name]
    writers: dict[str, Any] = {}
    second = replace(PANES, sink="scores/panes/1")
    for number in range(3):
        deliver(sink, PANES, writers, batch_of(number, TABLE), [TABLE])
        deliver(replace(sink, table="other"), second, writers, batch_of(number, TABLE), [TABLE])
    for writer in writers.values():
        writer.close()
    assert answers(sink) == answers(replace(sink, table="other"))


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_names_are_quoted(name, tmp_path):
    sink: Any = replace(sinks(tmp_path)[name], table='a"; DROP TABLE penstock_ledger; --', history=True)
    names = ['te"am; --' if one == "team" else 'select"' if one == "points" else one for one in PANES.schema.names]
    table = TABLE.rename_columns(names)
    target = replace(PANES, schema=table.schema, keys=('te"am; --', "window_start", "window_end"))
    give(sink, table, target=target)
    give(sink, table, 1, target=target)
    gone = table.slice(0, 1).set_column(table.num_columns - 1, "op", [[-1]]).cast(table.schema)
    give(sink, gone, 2, target=target)
    assert [row['select"'] for row in stored(replace(sink, table="x"), sink.table.replace('"', '""'))] == [2]


def test_memory_has_no_current_answer_of_discarding_panes():
    sink = memory("pieces")
    sink.clear()
    assert (sink.rows, sink.current(), sink.table.num_rows) == ([], [], 0)
    give(sink, TABLE, target=replace(PANES, mode="discarding"))
    with pytest.raises(sink_errors.PenstockError, match="holds discarding panes, which have no current answer"):
        sink.current()
    assert sink.table.num_rows == len(sink.rows) == 2


def test_every_error_has_three_parts_and_is_a_sink_error():
    kinds = [
        one for one in vars(sink_errors).values() if isinstance(one, type) and one.__module__ == sink_errors.__name__
    ]
    assert len(kinds) == 10
    assert all(issubclass(kind, SinkError) for kind in kinds)
    assert str(ReplayDiverged("what", "why", "instead")) == "what\n  why:     why\n  instead: instead"


def test_a_full_disk_leaves_no_half_batch_in_sqlite(tmp_path):
    import sqlite3

    sink, writers = sqlite(tmp_path / "a.db", table="scores"), {}
    deliver(sink, PANES, writers, batch_of(0, TABLE), [TABLE])
    writers[PANES.sink].connection.execute("PRAGMA max_page_count = 20")
    many = panes(*(pane(f"team-{number}", number) for number in range(5_000)))
    with pytest.raises(sqlite3.OperationalError, match="full"):
        deliver(sink, PANES, writers, batch_of(1, many), [many])
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 1)]
    assert give(sink, many, 1), "when there is room again, it goes on"


def test_a_full_disk_publishes_nothing(tmp_path, monkeypatch):
    import errno
    import os

    sink: Any = sinks(tmp_path)["parquet"]
    give(sink, TABLE)

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            give(sink, TABLE, 1)
    assert len(every(sink)) == 2
    assert give(sink, TABLE, 1)
    assert not list((tmp_path / "parquet").rglob("*.aside"))


def test_duckdb_can_be_read_between_batches(tmp_path):
    import subprocess
    import sys

    sink: Any = sinks(tmp_path)["duckdb"]
    writers: dict[str, Any] = {}
    read = f"import duckdb; print(duckdb.connect({sink.path!r}, read_only=True).execute('FROM scores').fetchall())"
    writers[PANES.sink] = sink.open(PANES)
    writers[PANES.sink].begin("L1", 1)
    for number in range(3):
        found = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        deliver(sink, PANES, writers, batch_of(number, TABLE), [TABLE])
