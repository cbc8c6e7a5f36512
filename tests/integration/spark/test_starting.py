"""What lets Spark start sooner: workers without zips, and an archive of classes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from penstock.spark import startup
from penstock.spark.startup import PYTHON, SCRIPT, archive_file, java_options, whole, worker_python

PACKAGE = os.path.dirname(pyspark.__file__)
SHORT = """
import sys
from pathlib import Path
from penstock.spark.startup import ended
from penstock.spark.session import session
spark = session(master="local[1]")
options = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions", "")
print("leaves" if "ArchiveClassesAtExit" in options else "uses" if ".jsa" in options else "neither", end=" ")
jvm = spark.sparkContext._gateway.proc.pid
print("mapped" if sys.argv[1] in Path(f"/proc/{jvm}/maps").read_text() else "not mapped")
ended()
"""


def test_a_worker_reads_pyspark_from_its_package(spark):
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: (__import__("pyspark").__file__, sys.path)).collect()
    (file, path), = found  # fmt: skip
    assert file == pyspark.__file__
    assert not [entry for entry in path if entry.endswith(".zip") and "pyspark" in entry]


def test_the_script_leaves_out_the_zips_alone():
    zips = [f"{PACKAGE}/python/lib/pyspark.zip", f"{PACKAGE}/python/lib/py4j-src.zip"]
    given = {**os.environ, PYTHON: sys.executable, "PYTHONPATH": os.pathsep.join([*zips, "/a b", "/elsewhere.zip"])}
    asked = [SCRIPT, "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1])", "x y"]
    said = subprocess.run(asked, env=given, capture_output=True, text=True, check=True).stdout
    assert said == "/a b:/elsewhere.zip x y\n"


def test_a_spark_that_lies_elsewhere_keeps_its_zips():
    assert worker_python("/opt/spark", PACKAGE) == {"PYSPARK_PYTHON": sys.executable}
    assert worker_python(PACKAGE, PACKAGE) == {"PYSPARK_PYTHON": SCRIPT, PYTHON: sys.executable}


def test_one_jvm_leaves_an_archive_and_the_next_maps_it(tmp_path):
    """Also where the folder's name has a space in it."""
    folder = tmp_path / "a folder"

    def started() -> str:
        given = {**os.environ, startup.FOLDER: str(folder)}
        asked = [sys.executable, "-c", SHORT, str(folder)]
        return subprocess.run(asked, env=given, capture_output=True, text=True, check=True).stdout.strip()

    assert started() == "leaves not mapped"
    assert started() == "uses mapped"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder for archives."""
    monkeypatch.setenv(startup.FOLDER, str(tmp_path))
    return tmp_path


def test_an_archive_is_of_one_java_and_one_spark(folder):
    """And not of the options that Java was given."""
    said = 'openjdk version "17.0.{0}" 2026-01-20\nOpenJDK Runtime Environment (build 17.0.{0}+7)\n'
    files = {archive_file(said.format(update), home) for update in (1, 2) for home in ("/a", "/b")}
    assert len(files) == 4
    options = "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n{}OpenJDK 64-Bit Server VM (build 17.0.1+7, emulated-client)"
    assert archive_file(options.format(said.format(1)), "/a") in files


def test_half_an_archive_is_written_anew(folder):
    file = archive_file("17", "/spark")
    assert "ArchiveClassesAtExit" in java_options("17", "/spark")
    file.write_bytes(bytes(4_096))
    assert not whole(file)
    assert "ArchiveClassesAtExit" in java_options("17", "/spark")
    file.write_bytes(b"\xf0\x0b\xab\xa2 and so on")
    assert f'"-XX:SharedArchiveFile={file}"' in java_options("17", "/spark")


def test_archives_that_nobody_uses_are_removed(folder):
    old, used = folder / "spark-old.jsa", folder / "spark-used.jsa"
    for file in (old, used):
        file.write_bytes(b"1234")
    os.utime(old, (time.time() - 40 * 24 * 3600,) * 2)
    java_options("17", "/spark")
    assert (old.exists(), used.exists()) == (False, True)


def test_there_is_no_archive_where_java_could_make_none(folder, monkeypatch, tmp_path):
    """Asked not to, no folder to write to, or a folder with files on Spark's class path."""
    configured = tmp_path / "spark"
    (configured / "conf").mkdir(parents=True)
    assert archive_file("17", str(configured)) is not None
    (configured / "conf" / "spark-defaults.conf").touch()
    assert archive_file("17", str(configured)) is None
    with monkeypatch.context() as one:
        one.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
        assert archive_file("17", "/spark") is None
    with monkeypatch.context() as one:
        one.setenv(startup.FOLDER, "off")
        assert archive_file("17", "/spark") is None
    monkeypatch.setenv(startup.FOLDER, "/proc/nowhere")
    assert archive_file("17", "/spark") is None
    assert java_options("17", "/spark") is None
