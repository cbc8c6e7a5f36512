"""Every test that takes `engine` runs once on each engine that is there."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from penstock.testing.crash.process import FAST_JAVA

# Every JVM that a test starts, by whatever road: sessions, commands, a broker.
os.environ.setdefault("JAVA_TOOL_OPTIONS", FAST_JAVA)

# `make conformance ENGINE=spark` plays the same tests on Spark, which takes seconds for each.
ASKED = os.environ.get("PENSTOCK_ENGINES", "").split()
ENGINES = ASKED or ["reference", *(["columnar"] if find_spec("pyarrow") else [])]

# A busy machine is no failure: neither an example nor the making of one has a time limit. `make test` plays the same
# examples each time, so that it fails for a change and not by chance; `make laws` draws new ones.
settings.register_profile(
    "penstock",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
)
settings.load_profile("penstock")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of the engine that plays."""
    return str(request.param)
