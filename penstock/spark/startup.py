"""How does Spark start sooner? With an archive of the classes it loads, which one JVM leaves behind for the next.

A JVM that begins reads and checks some fifteen thousand classes of Spark's, which is most of its work in the first
seconds. Java can keep them as they are in memory, in a file (class data sharing): the first JVM that ends by itself
writes it, after the run is over, and every later one maps it. Java takes an archive only where Java, jars and class
path are those it was made with, and does without otherwise.

`python -m penstock.spark.startup` makes it now, by a short run.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = "PENSTOCK_CLASS_ARCHIVE"
OFF = "off"
_KEPT = 30 * 24 * 3600.0  # seconds; those of a Java or a Spark that is gone
_NO_HEADER = bytes(4)  # Java writes the header last, so that what was cut off in the middle is known by it
# Folders that Spark puts on the class path where they are named: Java archives no class path with files in folders.
_ON_CLASS_PATH = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")


def java_options(java: str, spark_home: str) -> str | None:
    """What a JVM is told to use the archive or to leave one, for the Java that calls itself so; None: neither."""
    file = archive_file(java, spark_home)
    if file is None:
        return None
    with suppress(OSError):
        if not whole(file):
            _tidy(file.parent)
            return f'"-XX:ArchiveClassesAtExit={file}" -Xlog:cds=off -Xlog:cds+dynamic=off'
        os.utime(file)
        return f'"-XX:SharedArchiveFile={file}" -Xshare:auto -Xlog:cds=off -Xlog:class+path=off'
    return None


def archive_file(java: str, spark_home: str) -> Path | None:
    """Where the archive of this Java and this Spark lies, or is to lie; None where Java could make none."""
    asked = os.environ.get(FOLDER)
    conf = Path(spark_home, "conf")
    if asked == OFF or any(os.environ.get(name) for name in _ON_CLASS_PATH) or (conf.is_dir() and any(conf.iterdir())):
        return None
    with suppress(OSError, RuntimeError):  # no home, or not ours to write to: a JVM starts without
        folder = Path(asked) if asked else Path.home() / ".cache" / "penstock"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            # Java's other lines speak of its options, such as a compiler that is not used.
            itself = re.findall(r".*(?: version |Runtime Environment).*", java)
            which = hashlib.sha256("\n".join([*itself, os.path.realpath(spark_home)]).encode()).hexdigest()[:16]
            return folder / f"spark-{which}.jsa"
    return None


def whole(file: Path) -> bool:
    """Whether an archive is there to its end."""
    try:
        with file.open("rb") as archive:
            return archive.read(4) not in (b"", _NO_HEADER)
    except FileNotFoundError:
        return False


def _tidy(folder: Path) -> None:
    """Remove archives that nobody has used for a month: each has the size of Spark's classes, 160 MB."""
    for file in folder.glob("spark-*.jsa"):
        if time.time() - file.stat().st_mtime > _KEPT:
            file.unlink(missing_ok=True)


def main() -> int:
    """Make the archive unless it is there; say where it is."""
    from pyspark.find_spark_home import _find_spark_home

    from penstock.spark.session import refuse_java

    file = archive_file(refuse_java(), _find_spark_home())
    if file is None:
        print(f"no archive can be made here: {FOLDER}={OFF}, no folder to write to, or files on the class path")
        return 0
    if not whole(file):
        print("making an archive of Spark's classes, once", flush=True)
        os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")  # this run is over before it is fast
        _short_run()
        ended()
    print(file)
    return 0


def _short_run() -> None:
    """Run a pipeline for a moment: what it loads, others will."""
    import penstock as ps

    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        scores = ps.game_scores(events=2_000, realtime=False)
        totals = (
            scores.event_time("at", watermark=ps.bounded("1 second"))
            .key_by("team")
            .window(ps.tumbling("1 second"))
            .aggregate(points=ps.sum("points"))
        )
        short = ps.pipeline("short", totals.write(ps.sqlite(f"{folder}/answers.db", table="totals")))
        short.run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="end")


def ended() -> None:
    """Let the JVM end, which writes its archive then."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


SCRIPT = os.path.join(os.path.dirname(__file__), "unzipped-python.sh")
PYTHON = "PENSTOCK_PYTHON"  # what the script becomes


def worker_python(spark_home: str, package: str) -> dict[str, str]:
    """What the environment of a driver must say, for the Spark of that folder and the PySpark that was imported."""
    if os.path.realpath(spark_home) != os.path.realpath(package) or not os.access(SCRIPT, os.X_OK):
        return {"PYSPARK_PYTHON": sys.executable}
    return {"PYSPARK_PYTHON": SCRIPT, PYTHON: sys.executable}


if __name__ == "__main__":
    sys.exit(main())
