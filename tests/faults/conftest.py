"""One Spark session for all tests of a process, and one finished run that each test may copy and damage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.small import small


@pytest.fixture(scope="session")
def spark() -> Any:
    """A session in this process: a run that goes on after a kill need not wait for another JVM."""
    from penstock.spark.session import session

    return session(master="local[2]")


@pytest.fixture(scope="session")
def finished(spark, tmp_path_factory) -> Path:
    """A small run that has read all there is."""
    folder = tmp_path_factory.mktemp("finished")
    small(folder).run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up")
    return folder


@pytest.fixture
def held(finished, tmp_path) -> Path:
    """A copy of the small run, to be damaged."""
    folder = tmp_path / "held"
    shutil.copytree(finished, folder)
    return folder
