"""Do all streams of a pipeline reach their sinks, small or large, and is what nobody writes kept?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.checkpoint.unwritten_rows import kept_rows
from penstock.coordinator import sink_router
from penstock.coordinator.sink_router import Outlets
from penstock.errors import PlanError, TooManyBadRows
from penstock.spark import shard_task
from penstock.storage.local import CheckpointError, LocalStore
from tests.integration.spark.driving import caught_up, put, put_text, scores, totals

BROKEN = '{"team": "red", "points": "many", "at": "2026-01-01T00:00:02Z"}'


def fill(rows: Path) -> None:
    """A file with rows that cannot be read, one that completes a window, and one with a row too late for it."""
    put_text(rows, "a.json", f'{BROKEN}\nno JSON at all\n{{"team": "red", "points": 1, "at": null}}\n')
    put(rows, "b.json", ("red", 1, 1), ("blue", 2, 12))
    put(rows, "c.json", ("red", 4, 3), ("blue", 8, 25))


def test_one_pipeline_writes_all_its_streams(spark, tmp_path):
    """Panes to SQLite and to a function, late rows to files and to a function, quarantine to memory."""
    rows = tmp_path / "in"
    fill(rows)
    given: list[tuple[str, Any, list[Any]]] = []

    def take(frame: Any, batch: Any) -> None:
        assert frame.columns[:2] == ["team", "window_start" if "op" in frame.columns else "points"]
        given.append((batch.token, batch.rows, frame.collect()))

    results = totals(scores(rows))
    pipeline = ps.pipeline(
        "streams", results.write(ps.sqlite(tmp_path / "a.db", table="totals")), results.write(ps.foreach_batch(take)),
        results.late.write(ps.files(tmp_path / "late")), results.late.write(ps.foreach_batch(take)),
        results.quarantine.write(ps.memory("bad")), batch_rows=1,
    )  # fmt: skip
    told = caught_up(pipeline, tmp_path / "checkpoint")
    counts = told[-1].totals
    assert (counts.read, counts.late, counts.quarantined, told[-1].total_panes) == (7, 1, 3, 2)
    bad = sorted(ps.memory("bad").rows, key=lambda row: row["offset"])
    assert [row["raw"] for row in bad[:2]] == [BROKEN, "no JSON at all"]
    assert [row["step"] for row in bad] == ["decode", "decode", "event_time"]
    assert "points" in bad[0]["reason"]
    assert '"points": 1' in bad[2]["raw"]
    (late,) = ps.read_files(tmp_path / "late").to_pylist()
    assert (late["team"], late["points"], late["late_by"]) == ("red", 4, 9_000_000)
    assert [window["start"].second for window in late["late_windows"]] == [0]
    lineages = {token.split("/")[0] for token, _, _ in given}
    assert len(lineages) == 1
    assert [len(found) for _, _, found in given] == [count for _, count, _ in given]
    assert sorted(str(found[0].team) for _, _, found in given) == ["blue", "red", "red"]
    panes = [found[0] for _, _, found in given if "op" in found[0]]
    assert [(pane.team, pane.points, pane.pane_timing, pane.op) for pane in panes] == [
        ("red", 1, "on_time", 1), ("blue", 2, "on_time", 1),
    ]  # fmt: skip
    with pytest.raises(PlanError, match="at most once cannot be promised"):
        ps.pipeline("streams", results.write(ps.foreach_batch(take)), delivery="at_most_once").run(
            checkpoint=str(tmp_path / "other")
        )


def test_large_outputs_are_put_aside_by_tasks_and_never_collected(spark, tmp_path, monkeypatch):
    """More than a megabyte of panes in one shard: the driver is told where they lie, and every sink has them all."""
    looked: list[int] = []
    write = Outlets.write

    def look(self: Outlets, heard: Any, *arguments: Any, **more: Any) -> Any:
        for part in heard.streams.get("panes", ()):
            if "staged" in part.head:
                assert part.payload == b""
                assert Path(part.head["staged"]).stat().st_size > 0
                looked.append(part.head["rows"])
        return write(self, heard, *arguments, **more)

    monkeypatch.setattr(Outlets, "write", look)
    source = ps.game_scores(rate=50_000, keys=1_000_000, realtime=False, events=50_000)
    results = (
        source.event_time("at", watermark=ps.bounded("1 second")).key_by("user").window(ps.tumbling("1 hour"))
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip
    counted: list[tuple[int, int]] = []

    def take(frame: Any, batch: Any) -> None:
        counted.append(tuple(frame.selectExpr("count(1)", "sum(plays)").first()))

    folder = tmp_path / "a [strange] folder, größer"
    pipeline = ps.pipeline(
        "large", results.write(ps.memory("panes")), results.write(ps.sqlite(tmp_path / "a.db", table="totals")),
        results.write(ps.files(tmp_path / "files")), results.write(ps.foreach_batch(take)), shards=1,
    )  # fmt: skip
    told = caught_up(pipeline, folder, until="end")
    assert looked == [told[-1].total_panes]
    assert shard_task._INLINE < ps.memory("panes").table.nbytes
    assert counted == [(told[-1].total_panes, 50_000)]
    expected = sorted_rows(ps.memory("panes").table)
    assert sum(plays for _, plays in expected) == 50_000
    assert sorted_rows(ps.read_files(tmp_path / "files")) == expected
    assert sqlite_rows(tmp_path / "a.db") == expected
    assert list((folder / "penstock" / "staging").iterdir()) == []


def sorted_rows(table: pa.Table) -> list[tuple[str, int]]:
    """User and plays of every pane."""
    return sorted(zip(table.column("user").to_pylist(), table.column("plays").to_pylist(), strict=True))


def sqlite_rows(path: Path) -> list[tuple[str, int]]:
    """User and plays of every row."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute("SELECT user, plays FROM totals").fetchall())


def test_what_nobody_writes_is_kept_up_to_a_cap(spark, tmp_path, monkeypatch):
    """At the cap the run stops and says so; a folder that was moved away makes room, and nothing is lost."""
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    fill(rows)
    store = LocalStore(str(checkpoint))

    def pipeline(**how: Any) -> ps.Pipeline:
        return ps.pipeline("kept", totals(scores(rows, **how)).write(ps.memory("panes")), batch_rows=1)

    caught_up(pipeline(), checkpoint)
    (late,) = kept_rows(store, "late")
    (bad,) = kept_rows(store, "quarantine")
    assert (late.column("points").to_pylist(), bad.num_rows) == ([4], 3)
    put_text(rows, "d.json", "worse\n")
    with pytest.raises(TooManyBadRows, match="4 of 8 rows of scores were quarantined") as raised:
        caught_up(pipeline(max_bad=3), checkpoint)
    assert "raise max_bad" in str(raised.value)
    monkeypatch.setattr(sink_router, "KEPT_BYTES", 3_000)
    with pytest.raises(CheckpointError, match="quarantine rows that nobody writes anywhere have reached") as capped:
        caught_up(pipeline(), checkpoint)
    assert "move that folder away" in str(capped.value)
    (checkpoint / "penstock" / "quarantine").rename(tmp_path / "moved")
    caught_up(pipeline(), checkpoint)
    (bad,) = kept_rows(store, "quarantine")
    assert bad.column("raw").to_pylist() == ["worse"]
