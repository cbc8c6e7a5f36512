"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.memory import STORES


@pytest.fixture(scope="session")
def spark() -> Any:
    """The session that Penstock makes, on two cores."""
    from penstock.spark.session import session

    return session(master="local[2]")


@pytest.fixture
def shift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that moves the clock of pipelines started from now on, by the seconds written to it."""
    file = tmp_path / "shift"
    file.write_text("0")
    monkeypatch.setenv("PENSTOCK_CLOCK_SHIFT", str(file))
    return file


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What memory sinks hold is let go after each test."""
    yield
    STORES.clear()
