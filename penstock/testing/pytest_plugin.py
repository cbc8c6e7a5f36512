"""The fixture `prove` for pytest: write `pytest_plugins = ["penstock.testing.pytest_plugin"]` in conftest.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.crash.prove import Asked, Proof, prove as proven


@pytest.fixture
def prove(tmp_path: Path) -> Callable[..., Proof]:
    """Kill a pipeline, given by its file, and fail with the table where anything is lost, doubled, torn or different.

    Takes what `penstock prove` takes: `kills`, `seed`, `batches`, `batch_rows`, `without`.
    """

    def call(file: str | os.PathLike[str], *, kills: int = 5, **more: Any) -> Proof:
        found = proven(Asked(os.fspath(file), kills, **more), progress=tmp_path / "prove.json")
        assert found.good, f"\n{found}"
        return found

    return call
