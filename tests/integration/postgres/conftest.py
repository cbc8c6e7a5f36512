"""One PostgreSQL for all tests, and for each test schemas of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.servers.postgres import Database, database
from penstock.testing.servers.proxy import Proxy, proxy
from tests.unit.connectors.sinks.outputs import sinks

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Database]:
    """A server; killed processes lose nothing of what a machine that goes on has in memory, so it need not wait."""
    with database(fsync="off") as one:
        yield one


@pytest.fixture
def schema(server: Database) -> str:
    """A schema of its own, and one beside it for a sink with a history."""
    name = f"exam_{next(NUMBERS)}"
    server.ask(f"CREATE SCHEMA {name}")
    server.ask(f"CREATE SCHEMA {name}_h")
    return name


@pytest.fixture
def folder(server: Database, schema: str, tmp_path: Path) -> Path:
    """A folder in which the sinks of the tests find the server."""
    (tmp_path / "postgres").write_text(f"{server.url} {schema}")
    return tmp_path


@pytest.fixture(params=["postgres", "postgres history"])
def sink(request: pytest.FixtureRequest, folder: Path) -> object:
    """Each of the two forms."""
    return sinks(folder)[request.param]


@pytest.fixture
def bad_way(server: Database) -> Iterator[Proxy]:
    """A way to the server that can be made bad."""
    with proxy(server.port) as one:
        yield one
