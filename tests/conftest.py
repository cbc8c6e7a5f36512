"""Every test that takes `engine` runs once on each engine that is there."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

ENGINES = ["reference", *(["columnar"] if find_spec("pyarrow") and find_spec("penstock.testing.columnar") else [])]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of the engine that plays."""
    return str(request.param)
