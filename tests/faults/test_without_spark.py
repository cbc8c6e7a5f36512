"""What stops a run before there is any Spark: each is a sentence with the remedy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.spark.session import SparkError, _refuse_unfit, refuse_java, refuse_version


def test_no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkError, match="there is no Java") as raised:
        refuse_java()
    assert "apt-get install openjdk-17" in str(raised.value)


def test_java_home_that_leads_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match="there is no Java"):
        refuse_java()


@pytest.mark.parametrize(("version", "known_as"), [("11.0.2", "11"), ("1.8.0_392", "8"), ("1.7.0", "7"), ("9", "9")])
def test_java_that_is_too_old(monkeypatch, tmp_path, version, known_as):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=f"Java {known_as} is too old"):
        refuse_java()


@pytest.mark.parametrize("version", ["3.5.1", "4.1.0", "4.4.0", "5.0.0"])
def test_a_spark_that_is_not_supported(version):
    with pytest.raises(SparkError, match=f"PySpark {version} is not supported") as raised:
        refuse_version(version)
    assert "pip install" in str(raised.value)


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0", "4.3.1.dev0"])
def test_a_spark_that_is_supported(version):
    refuse_version(version)


def test_speculation_is_refused():
    session = SimpleNamespace(_jsparkSession=object(), conf={"spark.speculation": "true"})
    with pytest.raises(SparkError, match=r"spark\.speculation = true") as raised:
        _refuse_unfit(session)
    assert "'spark.speculation', 'false'" in str(raised.value)


def test_spark_connect_is_refused():
    with pytest.raises(SparkError, match="speaks Spark Connect") as raised:
        _refuse_unfit(SimpleNamespace(conf={}))
    assert "spark-submit" in str(raised.value)
