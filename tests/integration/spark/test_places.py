"""Where may a checkpoint lie, and in whose session may a pipeline run?"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import penstock as ps
from penstock.checkpoint.status import standing
from penstock.spark.hadoop_store import HadoopStore, store_of
from penstock.spark.session import SparkError, session
from penstock.storage.local import CheckpointError, LocalStore
from tests.integration.spark.driving import caught_up, put, scores, totals


def pipeline(rows: Path) -> ps.Pipeline:
    """Points by team, in memory."""
    return ps.pipeline("placed", totals(scores(rows)).write(ps.memory("panes")), shards=1)


def points() -> list[int]:
    """What the memory sink holds."""
    return sorted(row["points"] for row in ps.memory("panes").rows)


def test_a_checkpoint_on_the_local_disk_by_any_name(spark, tmp_path, monkeypatch):
    """One run goes on from the other: a relative path, an absolute one and a file: URI name one place."""
    monkeypatch.chdir(tmp_path)
    rows, name = tmp_path / "in", "a b/größer %20#1"
    absolute = str(tmp_path / name)
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 12))
    caught_up(pipeline(rows), name)
    assert (tmp_path / name / "commits" / "0").exists()
    put(rows, "b.json", ("red", 4, 23))
    caught_up(pipeline(rows), f"file://{quote(absolute)}")
    put(rows, "c.json", ("red", 8, 34))
    caught_up(pipeline(rows), absolute)
    assert points() == [1, 2, 4]
    assert standing(absolute).batch == standing(f"file:{quote(absolute)}").batch


def test_a_checkpoint_where_hadoop_reaches(spark, tmp_path):
    """Through a file system that Python cannot open: a mount table of Hadoop's."""
    (tmp_path / "mounted").mkdir()
    name = f"t{abs(hash(str(tmp_path)))}"
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}/mounted")
    rows, checkpoint = tmp_path / "in", f"viewfs://{name}/data/check point"
    store = store_of(spark, checkpoint)
    assert isinstance(store, HadoopStore)
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 12))
    caught_up(pipeline(rows), checkpoint)
    put(rows, "b.json", ("red", 4, 23))
    caught_up(pipeline(rows), checkpoint)
    assert points() == [1, 2]
    stood = standing(store)
    assert (stood.name, stood.totals.read, stood.running) == ("placed", 3, False)
    # It is what lies on the disk, and the same refusals hold.
    assert standing(f"{tmp_path}/mounted/check point").lineage == stood.lineage
    with pytest.raises(CheckpointError, match="belongs to the pipeline 'placed'"):
        ps.pipeline("other", totals(scores(rows)).write(ps.memory("others"))).run(checkpoint=checkpoint)
    assert store.read("penstock/nothing") is None
    assert store.names("nothing") == []
    assert store.create("penstock/once", b"1")
    assert not store.create("penstock/once", b"2")
    assert (store.read("penstock/once"), store.names("penstock")[:2]) == (b"1", ["clock", "epochs"])
    store.delete("penstock/once")
    assert store.read("penstock/once") is None
    assert LocalStore(f"{tmp_path}/mounted/check point").read("penstock/once") is None


def test_the_session_of_another_thread_is_found_and_left_as_it_is(spark):
    """Spark knows an active session by thread: a pipeline started in another one takes the session that is there."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    found: list[Any] = []
    try:
        thread = threading.Thread(target=lambda: found.append(session()))
        thread.start()
        thread.join()
        assert found[0].sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_session_that_is_made_leaves_ctrl_c_to_whoever_has_it(spark):
    assert getattr(signal.getsignal(signal.SIGINT), "__module__", "") != "pyspark.core.context"


def test_a_session_that_speculates_is_refused(spark, tmp_path):
    """A real one that says it has the setting, before anything is written."""
    speculating = spark.newSession()
    speculating.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    speculating.conf.set("spark.speculation", "TRUE")
    with pytest.raises(SparkError, match=r"spark\.speculation = true"):
        pipeline(tmp_path / "in").run(checkpoint=str(tmp_path / "checkpoint"), spark=speculating)
    assert not (tmp_path / "checkpoint").exists()


def test_a_session_of_spark_connect_is_refused(tmp_path):
    """It has no JVM session; its attributes say so when they are asked."""

    class Connected:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"`{name}` is not supported in Spark Connect")

    with pytest.raises(SparkError, match="speaks Spark Connect") as raised:
        pipeline(tmp_path / "in").run(checkpoint=str(tmp_path / "checkpoint"), spark=Connected())
    assert "spark-submit" in str(raised.value)
