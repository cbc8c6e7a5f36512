"""The Spark session a pipeline runs on: one with settings that keep its promises, or the user's own, checked."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.errors import PenstockError
from penstock.spark.startup import java_options, worker_python

SUPPORTED = ((4, 2), (4, 4))
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# What is fixed at the birth of a checkpoint, and what a session must have from its start.
QUERY_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.maintenanceInterval": "30s",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
}
# Hadoop's default way to make a file on a local disk forks a process to set its rights, some ninety times a batch.
LOCAL_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
}
SESSION_SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # What Spark remembers of the past for a page that is not there: a stream has a job each second.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    # Spark keeps a pool of Python processes for each environment; this one would part readers from shards.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
# On one machine nobody else need reach the driver.
ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class SparkError(PenstockError):
    """Spark is missing, is not one that works, or has settings that break a promise."""


def session(spark: Any = None, master: str | None = None) -> Any:
    """The given session, or the active one, checked; or a new one."""
    pyspark = _pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    refuse_version(pyspark.__version__)
    found = spark or SparkSession.getActiveSession()
    if found is None and SparkContext._active_spark_context is not None:
        # A session is active in the thread that made it; its settings are the user's, and stay.
        found = SparkSession.builder.getOrCreate()
    if found is None:
        found = _made(master, java=refuse_java())
    _refuse_unfit(found)
    return found


def refuse_version(version: str) -> None:
    """Refuse a PySpark outside the range that is tested."""
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    low, high = SUPPORTED
    if not low <= number < high:
        raise SparkError(
            f"PySpark {version} is not supported",
            f"Penstock needs PySpark {low[0]}.{low[1]} or newer, below {high[0]}.{high[1]}",
            "write: pip install 'pyspark>=4.2,<4.4'",
        )


def refuse_java() -> str:
    """Refuse to start without Java 17 or newer, with what to type; what the Java that is there calls itself."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    said = ""
    if java and os.path.exists(java):
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found.group(1)) < 17:
        raise SparkError(
            f"Java {found.group(1)} is too old" if found else "there is no Java",
            "Spark runs on Java 17 or newer",
            "install it, such as: sudo apt-get install openjdk-17-jre-headless (Debian, Ubuntu), "
            "brew install openjdk@17 (macOS); then set JAVA_HOME if java is not on the PATH",
        )
    return said


def apply_settings(spark: Any, shards: int, local: bool) -> dict[str, str | None]:
    """Give a session what a query's birth needs, a partition for each shard; what it had before is given back."""
    settings = {**QUERY_SETTINGS, "spark.sql.shuffle.partitions": str(shards), **(LOCAL_FILES if local else {})}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    return before


def restore_settings(spark: Any, before: dict[str, str | None]) -> None:
    """Give a session back what it had."""
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def _pyspark() -> Any:
    try:
        import pyspark
    except ImportError:
        raise SparkError(
            "PySpark is not installed",
            "a pipeline runs on Spark; the library alone does without",
            "write: pip install 'penstock[spark]'",
        ) from None
    return pyspark


def _made(master: str | None, java: str) -> Any:
    """A session of our own; what spark-submit or the configuration files say comes before our settings."""
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    os.environ["PYTHONPATH"] = _own_paths()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:
        SparkContext._ensure_initialized()  # the JVM that spark-submit has started knows what it was told
    said = SparkConf()
    wanted = master or said.get("spark.master") or os.environ.get("PENSTOCK_MASTER", "local[*]")
    settings = {**SESSION_SETTINGS, **(ONE_MACHINE if wanted.startswith("local") else {})}
    home, package = _find_spark_home(), os.path.dirname(pyspark.__file__)
    archive = None if submitted else java_options(java, home)
    if archive is not None:
        settings["spark.driver.extraJavaOptions"] = archive
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ |= worker_python(home, package)
    builder = SparkSession.builder.appName(said.get("spark.app.name") or "penstock").master(wanted)
    for name, value in settings.items():
        if not said.contains(name):
            builder = builder.config(name, value)
    # Under spark-submit the JVM is there already, and its output belongs to whoever submitted it.
    with _output_to("-" if submitted else os.environ.get("PENSTOCK_LOG")), _own_interrupts():
        made = builder.getOrCreate()
    if wanted.startswith("local"):
        threading.Thread(target=_warm, args=(made,), name="penstock-warm", daemon=True).start()
    return made


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to whoever has it: a new context takes it, and would talk to its JVM in the middle of a talk."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _warm(spark: Any) -> None:
    """Start the Python workers while the query is being planned: the first batch would wait for them otherwise."""

    def imported(batches: Iterator[Any]) -> Iterator[Any]:
        import penstock.spark.ingest_task
        import penstock.spark.shard_processor
        import penstock.spark.source  # noqa: F401

        yield from batches

    cores = int(spark.sparkContext.defaultParallelism)
    with suppress(Exception):  # the session may be gone before this is done, and nobody needs it
        spark.range(0, cores, 1, cores).mapInArrow(imported, "id long").collect()


def _own_paths() -> str:
    """Where the driver finds modules that are not installed, such as those beside a pipeline: the workers need them."""
    held = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    installed = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    for path in (os.path.realpath(path or os.getcwd()) for path in sys.path):
        if os.path.isdir(path) and path not in held and not any(path.startswith(root) for root in installed):
            held.append(path)
    return os.pathsep.join(held)


@contextmanager
def _output_to(log: str | None) -> Iterator[None]:
    """While Spark's JVM starts, give it a file (by default none) for all it and its workers will ever print."""
    if log == "-":
        yield
        return
    kept = [os.dup(number) for number in (1, 2)]
    file = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        for number in (1, 2):
            os.dup2(file, number)
        yield
    finally:
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(file)


def _refuse_unfit(spark: Any) -> None:
    if not hasattr(spark, "_jsparkSession"):
        raise SparkError(
            "this session speaks Spark Connect",
            "a task learns the watermark of its batch by a local property, which Spark Connect has not",
            "run the pipeline where the driver is: on a classic session, or with spark-submit",
        )
    if spark.conf.get("spark.speculation", "false").lower() == "true":
        raise SparkError(
            "the session has spark.speculation = true",
            "a task that runs twice at once would write its shard's memory twice",
            "start the session without it: .config('spark.speculation', 'false')",
        )
