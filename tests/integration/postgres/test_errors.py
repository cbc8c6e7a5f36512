"""What each error of PostgreSQL means, on the real server where it can be had there; and that no secret is shown."""

from __future__ import annotations

import pickle
import threading
import traceback
from dataclasses import replace
from typing import Any

import psycopg
import pytest

import penstock as ps
from penstock.connectors.postgres.errors import AGAIN, REMEDIES, meaning
from penstock.connectors.postgres.sink import Postgres, postgres
from penstock.connectors.sink_errors import SinkDown, SinkError
from penstock.credentials import Secret
from penstock.errors import PlanError
from penstock.testing.servers.postgres import Database
from tests.unit.connectors.sinks.outputs import PANES, answers, give, pane, panes, sinks

TABLE = panes(pane("red", 1))
HIDDEN = "hunter2 @:/%"
IN_URL = "hunter2%20%40%3A%2F%25"
NOWHERE = "postgresql://me@127.0.0.1:1/games"


@pytest.fixture
def sink(folder) -> Postgres:
    """A sink that keeps the current answer."""
    found: Any = sinks(folder)["postgres"]
    return found


@pytest.fixture
def guarded(server: Database, schema: str) -> str:
    """A user who needs a password, and may write in the schema."""
    server.ask(f"CREATE ROLE {schema} LOGIN PASSWORD '{HIDDEN}'")
    server.ask(f"GRANT ALL ON SCHEMA {schema} TO {schema}")
    return schema


def whole(error: BaseException) -> str:
    """All that a traceback shows, and each error of the chain."""
    chain, one = [str(error), repr(error)], error
    while one.__cause__ is not None:
        one = one.__cause__
        chain += [str(one), repr(one)]
    return "\n".join([*chain, *traceback.format_exception(error)])


@pytest.mark.parametrize("way", ["password", "secret", "url", "words"])
def test_row_25_a_password_lets_us_in_and_is_never_shown(way, guarded, server, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", HIDDEN)
    url = server.url_of(guarded)
    made = {
        "password": lambda: postgres(url, table=f"{guarded}.t", password=HIDDEN),
        "secret": lambda: postgres(url, table=f"{guarded}.t", password=ps.secret("DATABASE_PASSWORD")),
        "url": lambda: postgres(url.replace("@", f":{IN_URL}@", 1), table=f"{guarded}.t"),
        "words": lambda: postgres(f"host=127.0.0.1 port={server.port} dbname=postgres user={guarded} "
                                  f"password='{HIDDEN}'", table=f"{guarded}.t"),
    }  # fmt: skip
    sink = made[way]()
    assert give(sink, TABLE)
    assert sink.place == f"postgres:127.0.0.1:{server.port}/postgres#{guarded}.t"
    back = pickle.loads(pickle.dumps(sink))
    assert back == sink
    shown = [repr(sink), str(sink), sink.describe(), sink.place, repr(back), f"{sink!r:>5}"]
    assert not [text for text in shown if "hunter2" in text]


@pytest.mark.parametrize("way", ["password", "url"])
def test_row_25_a_wrong_password_stops_and_is_not_shown(way, guarded, server):
    url = server.url_of(guarded)
    wrong = (
        postgres(url, table=f"{guarded}.t", password=f"{HIDDEN}x")
        if way == "password"
        else postgres(url.replace("@", f":{IN_URL}x@", 1), table=f"{guarded}.t")
    )
    with pytest.raises(SinkError, match=r"does not let the pipeline in: .*password authentication failed") as refused:
        give(wrong, TABLE)
    assert not isinstance(refused.value, SinkDown)
    assert "hunter2" not in whole(refused.value)


def test_row_25_no_password_where_one_is_needed_stops(guarded, server):
    with pytest.raises(SinkError, match="no password supplied"):
        give(postgres(server.url_of(guarded), table=f"{guarded}.t"), TABLE)


def test_row_25_a_server_that_is_away_does_not_make_us_show_the_password():
    sink = postgres(f"postgresql://me:{IN_URL}@127.0.0.1:1/games", table="t")
    with pytest.raises(SinkDown, match="Connection refused") as away:
        give(sink, TABLE)
    assert "hunter2" not in whole(away.value)


@pytest.mark.parametrize("url", [
    f"postgresql://me:{HIDDEN}@host/db", "postgresql://me:hunter2%zz@host/db", "hunter2", "password=hunter2 or not",
    "postgresql://me@host/db?hunter2=1", "http://me:hunter2@host/",
])  # fmt: skip
def test_row_25_an_address_that_cannot_be_read_is_refused_without_showing_it(url):
    with pytest.raises(PlanError, match=r"the address that .* was given cannot be read") as refused:
        postgres(url, table="t").refuse(PANES)
    assert "hunter2" not in whole(refused.value)


def test_row_25_a_pipeline_that_explains_itself_shows_no_password():
    stream = ps.events("team string, points long, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    totals = stream.key_by("team").window(ps.tumbling("5 minutes")).aggregate(points=ps.sum("points"))
    sink = ps.postgres(f"postgresql://me:{IN_URL}@host/games", table="scores", password=Secret(HIDDEN))
    pipeline = ps.pipeline("team-scores", totals.write(sink))
    said = pipeline.explain()
    assert "PostgreSQL host:5432/games, table scores (exactly once: ledger in the same transaction)" in said
    assert "hunter2" not in said + repr(pipeline)


@pytest.mark.parametrize("value", [None, 3, b"postgresql:///x"])
def test_what_is_no_address_is_refused(value):
    with pytest.raises(PlanError, match="where an address or a password stands"):
        postgres(value, table="t")


def test_what_an_address_leaves_out_is_as_the_environment_says(monkeypatch):
    for name, value in {"PGHOST": "db.example", "PGPORT": "6000", "PGUSER": "ann", "PGDATABASE": ""}.items():
        monkeypatch.setenv(name, value)
    assert postgres("", table="t").place == "postgres:db.example:6000/ann#public.t"
    assert postgres("postgresql:///games", table="g.t").place == "postgres:db.example:6000/games#g.t"
    monkeypatch.delenv("PGHOST")
    assert postgres("postgresql://:7000/games", table="t").place == "postgres:local:7000/games#public.t"


def test_without_psycopg_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("penstock.connectors.postgres.sink.find_spec", lambda name: None)
    with pytest.raises(PlanError, match=r"pip install 'penstock\[postgres\]'"):
        postgres(NOWHERE, table="t").refuse(PANES)


def test_a_database_that_does_not_exist_stops(server):
    with pytest.raises(SinkError, match='database "nowhere" does not exist') as refused:
        give(postgres(server.url_of(name="nowhere"), table="t"), TABLE)
    assert not isinstance(refused.value, SinkDown)


def test_a_database_that_cannot_hold_every_text_is_refused(server, schema):
    server.ask(f"CREATE DATABASE {schema} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SinkError, match="has the encoding LATIN1"):
        give(postgres(server.url_of(name=schema), table="t"), TABLE)


def test_a_server_that_is_too_old_is_refused(sink, monkeypatch):
    monkeypatch.setattr("penstock.connectors.postgres.writer.OLDEST", 990_000)
    with pytest.raises(SinkError, match=r"is PostgreSQL \d+"):
        give(sink, TABLE)


def test_no_connection_free_means_wait(guarded, server):
    server.ask(f"ALTER ROLE {guarded} CONNECTION LIMIT 1")
    sink = postgres(server.url_of(guarded), table=f"{guarded}.t", password=HIDDEN)
    with psycopg.connect(**sink.connection()), pytest.raises(SinkDown, match="too many connections for role"):
        give(sink, TABLE)
    server.ask(f"ALTER ROLE {guarded} CONNECTION LIMIT 2")
    assert give(sink, TABLE)


def test_a_table_that_somebody_has_locked_means_wait(sink, server, monkeypatch):
    give(sink, TABLE)
    monkeypatch.setattr("penstock.connectors.postgres.writer.PATIENCE_SECONDS", 0.2)
    with server.connect(autocommit=False) as other:
        other.execute(f"LOCK TABLE {sink.table} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SinkDown, match="lock timeout"):
            give(sink, panes(pane("red", 2)), 1)
    assert give(sink, panes(pane("red", 2)), 1)


def test_a_deadlock_means_wait(sink, server):
    give(sink, panes(pane("red", 1), pane("blue", 1)))
    with server.connect(autocommit=False) as other:
        # Who has waited so long is the one to give up.
        other.execute("SET deadlock_timeout = '1min'")
        other.execute(f"SELECT * FROM {sink.table} WHERE team = 'blue' FOR UPDATE")
        mine = sink.open(PANES)
        mine.begin("L1", 1)
        mine._begin_batch()
        mine._execute("SET deadlock_timeout = '50ms'")
        mine._execute(f"UPDATE {sink.table} SET points = 2 WHERE team = 'red'")
        other.pgconn.send_query(f"UPDATE {sink.table} SET points = 3 WHERE team = 'red'".encode())
        try:
            with pytest.raises(SinkDown, match="deadlock detected"):
                mine._execute(f"UPDATE {sink.table} SET points = 2 WHERE team = 'blue'")
        finally:
            mine.close()
            other.close()
    assert give(sink, panes(pane("red", 2)), 1)


def test_a_statement_that_somebody_cancels_means_wait(sink, server):
    writer = sink.open(PANES)
    writer.begin("L1", 1)
    writer._begin_batch()
    pid = writer.connection.info.backend_pid
    writer.connection.execute("SELECT 1")
    timer = threading.Timer(0.2, lambda: server.ask("SELECT pg_cancel_backend(%s)", pid))
    timer.start()
    with pytest.raises(SinkDown, match="canceling statement"):
        writer._execute("SELECT pg_sleep(10)")
    timer.join()
    writer.close()


def test_a_server_on_standby_means_wait():
    for one in (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.CannotConnectNow):
        assert isinstance(meaning(one("cannot"), "p"), SinkDown)


@pytest.mark.parametrize("state", sorted(AGAIN | {"08006", "08001"}))
def test_what_passes_by_itself_is_waited_for(state):
    assert isinstance(meaning(psycopg.errors.lookup(state)("it said so"), "postgres:h#t"), SinkDown)


@pytest.mark.parametrize("state", [*sorted(REMEDIES), "42601", "XX000"])
def test_what_does_not_pass_by_itself_stops_with_what_to_do(state):
    error = meaning(psycopg.errors.lookup(state)("it said so"), "postgres:h#t")
    assert not isinstance(error, SinkDown)
    assert f"it said so ({state})" in error.what
    assert all((error.why, error.instead))


def test_a_setting_that_would_lose_a_commit_is_not_taken_over(guarded, server):
    server.ask(f"ALTER ROLE {guarded} SET synchronous_commit = off")
    server.ask(f"ALTER ROLE {guarded} SET default_transaction_read_only = on")
    server.ask(f"ALTER ROLE {guarded} SET default_transaction_isolation = serializable")
    server.ask(f"ALTER ROLE {guarded} SET statement_timeout = '1ms'")
    sink = postgres(server.url_of(guarded), table=f"{guarded}.t", password=HIDDEN)
    assert give(sink, TABLE)
    writer = sink.open(PANES)
    writer.begin("L1", 1)
    assert writer._execute("SHOW synchronous_commit").fetchone() == ("on",)
    writer.close()
    assert answers(replace(sink, url=postgres(server.url, table="x").url, password=None)) == [("red", 0, 1)]


def test_the_server_of_the_tests_is_real(server):
    ((version,),) = server.ask("SHOW server_version_num")
    assert int(version) >= 150_000
