"""Enrichment on Spark: what is remembered outlives a restart, answers are tidied up, a service may be down."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.enrichment_log import FOLDER
from penstock.errors import DataError
from tests.integration.spark.driving import Unspoken, caught_up, put, scores
from tests.integration.spark.fickle import ROWS, Fickle, pipeline, run, said


def answers(folder: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"{folder}/a.db")) as connection:
        return connection.execute('SELECT "user", answer FROM said').fetchall()


def written(folder: Path) -> list[int]:
    """The batches whose answers lie beside the checkpoint."""
    files = (folder / "checkpoint" / FOLDER).glob("*/*")
    return sorted({int(file.name.partition("-")[0]) for file in files})


def test_each_question_is_asked_once_a_batch_and_answers_of_old_batches_leave(spark: Any, tmp_path: Path) -> None:
    ended = run(tmp_path)
    heard = answers(tmp_path)
    assert len(heard) == ROWS
    assert {answer for _, answer in heard} == set(said(tmp_path))
    assert len(said(tmp_path)) == len(set(heard)) <= 20 * ended.batches
    assert set(written(tmp_path)) <= {ended.batches - 1, ended.batches - 2}


def test_a_batch_that_asks_nothing_writes_nothing_and_a_restart_remembers(spark: Any, tmp_path: Path) -> None:
    rows = tmp_path / "in"
    timed = scores(rows).event_time("at", watermark=ps.ascending())
    told = timed.enrich(Fickle(str(tmp_path)), on="team", output="answer string", cache="1 hour")
    made = ps.pipeline("told", told.write(ps.memory("told")), shards=2)
    put(rows, "a.json", ("red", 1, 1), ("blue", 2, 2))
    caught_up(made, tmp_path / "checkpoint")
    put(rows, "b.json", ("red", 3, 3), ("blue", 4, 4), ("red", 5, 5))
    later = caught_up(made, tmp_path / "checkpoint")
    heard = {row["points"]: row["answer"] for row in ps.memory("told").rows}
    assert len(said(tmp_path)) == 2
    assert heard[1] == heard[3] == heard[5]
    assert heard[2] == heard[4]
    assert later[-1].open_windows == 2
    assert written(tmp_path) == []


def test_a_service_that_is_down_stops_the_run_where_that_is_asked_for_and_it_goes_on(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "down").touch()
    with pytest.raises(DataError, match=r"Fickle has no answer for .*: ConnectionError: the service is down"):
        run(tmp_path, on_error="fail")
    (tmp_path / "down").unlink()
    run(tmp_path, on_error="fail")
    assert len(answers(tmp_path)) == ROWS


def test_a_service_that_is_down_fills_the_quarantine(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "down").touch()
    with pytest.raises(ps.TooManyBadRows, match=f"all {ROWS:,} rows of .* went to quarantine") as raised:
        run(tmp_path)
    assert "enrich: ConnectionError: the service is down · in Fickle.__call__ (fickle.py, line" in raised.value.why
    assert f"({ROWS:,} rows)" in raised.value.why


def test_a_batch_of_a_static_dataframe(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(f"u{i % 5}", f"2026-05-01T12:00:{i:02d}") for i in range(40)],
                                  "user string, at string")  # fmt: skip
    timed = ps.stream(frame).event_time("at", watermark=ps.bounded("1 minute"))
    told = timed.enrich(Fickle(str(tmp_path)), on="user", output="answer string")
    made = ps.pipeline("once", told.write(ps.memory("once")), shards=2)
    made.run(checkpoint=str(tmp_path / "checkpoint"), spark=spark)
    heard = {(row["user"], row["answer"]) for row in ps.memory("once").rows}
    assert len(heard) == len(said(tmp_path)) == 5
    assert written(tmp_path) == []


def test_a_checkpoint_that_python_cannot_reach_is_refused_before_spark_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ps.PlanError, match="cannot write its answers down") as raised:
        pipeline(tmp_path).run(checkpoint="viewfs://nowhere/data", spark=Unspoken())
    assert "staging=" in raised.value.instead


def test_or_has_its_answers_beside_staging(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    name = f"e{abs(hash(str(tmp_path)))}"
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}/mounted")
    rows = tmp_path / "in"
    timed = scores(rows).event_time("at", watermark=ps.ascending())
    told = timed.enrich(Fickle(str(tmp_path)), on="team", output="answer string")
    made = ps.pipeline("told", told.write(ps.memory("told")), shards=1, staging=f"file://{tmp_path}/staging")
    put(rows, "a.json", ("red", 1, 1), ("blue", 2, 2))
    caught_up(made, f"viewfs://{name}/data/checkpoint")
    assert {row["answer"] for row in ps.memory("told").rows} == set(said(tmp_path))
    assert len(list((tmp_path / "staging-answers").glob("*/000000000000-0-*-0"))) == 1
