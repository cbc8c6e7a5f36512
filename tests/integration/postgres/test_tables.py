"""Which tables PostgreSQL is given, which it may bring along, and which names and values it can hold."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from penstock.connectors.postgres.copy import append, declared, null_patterns
from penstock.connectors.postgres.sink import Postgres, postgres
from penstock.connectors.sink_errors import ColumnsDiffer, SinkDown, SinkError
from penstock.credentials import Secret
from penstock.errors import PlanError
from penstock.quarantine.read_back import keeps_all, reader_of
from penstock.testing.servers.postgres import Database
from tests.unit.connectors.sinks.outputs import (
    BAD,
    LATES,
    PANES,
    QUARANTINE,
    SCORES,
    answers,
    every,
    give,
    pane,
    panes,
    sinks,
    stored,
)

TABLE = panes(pane("red", 1), pane("blue", 2))
MADE = """CREATE TABLE {} (team text, window_start timestamptz, window_end timestamptz, points bigint,
    pane_index bigint, pane_timing text, pane_final boolean{})"""
KEYS = "team, window_start, window_end"


@pytest.fixture
def sink(folder) -> Postgres:
    """A sink that keeps the current answer."""
    found: Any = sinks(folder)["postgres"]
    return found


def text_panes(*texts: str) -> tuple[Any, pa.Table]:
    """An output with a text and a list of texts among its values, and a pane for each text."""
    schema = SCORES.insert(4, pa.field("word", pa.string())).insert(5, pa.field("words", pa.list_(pa.string())))
    rows = [{**pane(f"team-{number}", 1), "word": text, "words": [text, None]} for number, text in enumerate(texts)]
    return replace(PANES, schema=schema), pa.Table.from_pylist(rows, schema=schema)


def test_the_table_is_made_with_an_index_that_holds_null_for_a_key(sink, server, schema):
    give(sink, TABLE)
    columns = (
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
    )
    assert server.ask(columns, schema, "scores") == [
        ("team", "text"), ("window_start", "timestamp with time zone"), ("window_end", "timestamp with time zone"),
        ("points", "bigint"), ("pane_index", "bigint"), ("pane_timing", "text"), ("pane_final", "boolean"),
    ]  # fmt: skip
    ((index,),) = server.ask("SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = 'scores'", schema)
    assert index.endswith(f"({KEYS}) NULLS NOT DISTINCT")
    assert server.ask("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", sink.table) == [(["fillfactor=70"],)]


def test_a_table_without_a_schema_is_in_public(server):
    sink = postgres(server.url, table="plain_scores")
    assert sink.place.endswith("/postgres#public.plain_scores")
    give(sink, TABLE)
    assert len(server.ask("SELECT * FROM public.plain_scores")) == 2
    server.ask("DROP TABLE plain_scores, penstock_ledger, penstock_retired")


def test_the_quarantine_is_read_back(sink, server):
    """As `penstock quarantine list` reads it."""
    read_back = reader_of(sink)
    assert read_back is not None
    assert keeps_all(sink)
    assert list(read_back(sink)) == []
    bad = [{"source": "web", "partition": "web/0", "offset": n, "step": "decode", "reason": "no JSON", "raw": "{"}
           for n in (7, 5)]  # fmt: skip
    give(sink, pa.Table.from_pylist(bad, schema=QUARANTINE), target=BAD)
    assert list(read_back(sink)) == [("web", "web/0", n, "decode", "no JSON", "{") for n in (5, 7)]
    away = replace(sink, url=Secret("postgresql://ann:hunter2@127.0.0.1:1/postgres"))
    with pytest.raises(SinkDown, match="does not answer") as told:
        list(read_back(away))
    assert "hunter2" not in str(told.value)


def test_a_table_that_is_there_is_used_whatever_the_order_of_its_columns(sink, server):
    server.ask(MADE.format(sink.table, ", id bigserial, noted timestamptz DEFAULT now(), note text"))
    give(sink, TABLE)
    server.ask(f"UPDATE {sink.table} SET note = 'mine' WHERE team = 'red'")
    give(sink, panes(pane("red", 5, index=1)), 1)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 5)]
    assert [row["note"] for row in stored(sink, sink.table) if row["team"] == "red"] == ["mine"]


def test_a_primary_key_of_ones_own_will_do(sink, server):
    server.ask(MADE.format(sink.table, ", PRIMARY KEY (window_end, team, window_start)"))
    give(sink, TABLE)
    give(sink, panes(pane("red", 5, index=1)), 1)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 5)]
    with pytest.raises(SinkError, match=r"(?s)null value in column .* a rule of its own"):
        give(sink, panes(pane(None, 5)), 2)


@pytest.mark.parametrize("index", [
    f"({KEYS})", f"({KEYS}) NULLS NOT DISTINCT WHERE points > 0", "(team, window_start) NULLS NOT DISTINCT",
    f"({KEYS}, points) NULLS NOT DISTINCT", "(lower(team), window_start, window_end) NULLS NOT DISTINCT",
])  # fmt: skip
def test_an_index_that_does_not_hold_each_key_once_is_not_taken_for_one_that_does(index, sink, server, schema):
    server.ask(MADE.format(sink.table, ""))
    server.ask(f"CREATE UNIQUE INDEX ON {sink.table} {index}")
    with pytest.raises(SinkError, match=r'(?s)lacks a table or an index.*CREATE UNIQUE INDEX ON "scores"'):
        give(replace(sink, create=False), TABLE)
    give(sink, TABLE)
    assert len(server.ask("SELECT 1 FROM pg_indexes WHERE schemaname = %s AND tablename = 'scores'", schema)) == 2


@pytest.mark.parametrize(("more", "said"), [
    (", player text NOT NULL", "player is not in the output"),
    (", points_2 bigint", "points is missing"),
    (", points text", "points is text, not bigint"),
    (", points integer", "points is integer, not bigint"),
])  # fmt: skip
def test_a_table_with_other_columns_is_refused_with_the_difference(more, said, sink, server):
    plain = MADE.format(sink.table, more)
    server.ask(plain if "player" in more else plain.replace(" points bigint,", "", 1))
    with pytest.raises(ColumnsDiffer, match=said):
        give(sink, TABLE)


def test_create_false_says_what_to_run_and_what_it_says_runs(sink, server):
    kept = replace(sinks_of(sink), create=False)
    with pytest.raises(SinkError, match="lacks a table or an index, and create=False says not to make any") as refused:
        give(kept, TABLE)
    assert not isinstance(refused.value, SinkDown)
    server.ask(refused.value.instead.partition("\n")[2])
    assert give(kept, TABLE)
    assert answers(kept) == [("blue", 0, 2), ("red", 0, 1)]
    assert len(every(kept)) == 2


def sinks_of(sink: Postgres) -> Postgres:
    """The same with a history."""
    return replace(sink, history=True)


def test_a_user_who_may_only_write_rows_writes_where_tables_are_there(sink, server, schema):
    make_user(server, f"clerk_{schema}")
    give(sink, TABLE)
    server.ask(f"GRANT USAGE ON SCHEMA {schema} TO clerk_{schema}")
    clerk = replace(sink, url=postgres(server.url_of(f"clerk_{schema}"), table="x").url, password=secret("pass-w0rd"))
    with pytest.raises(SinkError, match=r"(?s)permission denied for table.*grant it: USAGE on the schema"):
        give(clerk, TABLE, 1)
    server.ask(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO clerk_{schema}")
    assert give(clerk, panes(pane("red", 7)), 1)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 7)]
    with pytest.raises(SinkError, match=r"(?s)permission denied for schema.*CREATE on the schema"):
        give(replace(clerk, table=f"{schema}.another"), TABLE, target=replace(PANES, sink="other/panes/0"))


def make_user(server: Database, name: str, rights: str = "") -> None:
    """A user with a password."""
    server.ask(f"CREATE ROLE {name} LOGIN {rights} PASSWORD 'pass-w0rd'")


def secret(text: str) -> Any:
    from penstock.credentials import Secret

    return Secret(text)


def test_a_schema_that_is_not_there_is_not_made(sink):
    with pytest.raises(SinkError, match=r'(?s)a schema that does not exist.*run: CREATE SCHEMA "no ""such"""'):
        give(replace(sink, table='no "such".scores'), TABLE)


def test_a_view_is_not_written_to(sink, server, schema):
    server.ask(f"CREATE VIEW {sink.table} AS SELECT 1 AS team")
    with pytest.raises(SinkError, match='relation "scores" already exists'):
        give(sink, TABLE)


@pytest.mark.parametrize("table", [
    "", "penstock_ledger", "a.penstock_x", None, "a.b.c", ".b", "a.", "pg_temp.x", "pg_catalog.x", "a\x00b",
])  # fmt: skip
def test_a_table_that_cannot_be_is_refused(table):
    with pytest.raises(PlanError, match="cannot be called"):
        postgres("postgresql:///x", table=table).refuse(PANES)


@pytest.mark.parametrize(("table", "history"), [
    ("x" * 64, False), ("é" * 32, False), ("x" * 56, True), ("s" * 64 + ".t", False),
])  # fmt: skip
def test_a_name_that_postgres_would_cut_is_refused(table, history):
    with pytest.raises(PlanError, match="PostgreSQL cuts names after 63 bytes"):
        postgres("postgresql:///x", table=table, history=history).refuse(PANES)


def test_names_of_63_bytes_are_written(server, schema):
    sink = postgres(server.url, table=f"{schema}.{'t' * 55}", history=True)
    target = replace(PANES, schema=SCORES.append(pa.field("c" * 63, pa.int64())))
    sink.refuse(target)
    table = TABLE.append_column("c" * 63, pa.array([1, 2]))
    give(sink, table, target=target)
    assert len(every(sink)) == 2


@pytest.mark.parametrize("column", ["c" * 64, "ctid", "xmin", "", "a\x00"])
def test_a_column_that_postgres_cannot_have_is_refused(column):
    target = replace(PANES, schema=SCORES.append(pa.field(column, pa.int64())))
    with pytest.raises(PlanError):
        postgres("postgresql:///x", table="t").refuse(target)


def test_more_keys_than_an_index_has_are_refused():
    keys = [f"k{number}" for number in range(31)]
    schema = pa.schema([*((key, pa.int64()) for key in keys), *SCORES])
    with pytest.raises(PlanError, match="an index of PostgreSQL has at most 32"):
        postgres("postgresql:///x", table="t").refuse(replace(PANES, schema=schema, keys=(*keys, *PANES.keys[1:])))


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.timestamp("ns"), pa.decimal256(60, 2), pa.decimal128(5, -2)])
def test_a_type_that_postgres_has_not_is_refused_by_its_name(kind):
    with pytest.raises(PlanError, match=f"a column of type {re.escape(str(kind))} cannot be written to PostgreSQL"):
        postgres("postgresql:///x", table="t").refuse(replace(PANES, schema=SCORES.append(pa.field("x", kind))))


def test_row_25_names_are_names_whatever_they_hold(server, schema):
    odd = "a\"; DROP TABLE penstock_ledger; --%s?{}'\\"
    server.ask(f'CREATE SCHEMA "{schema} ""; --%?"')
    sink = postgres(server.url, table=f'{schema} "; --%?.{odd}', history=True)
    names = {"team": 'te"am; --%(x)s?', "points": "select\n"}
    table = TABLE.rename_columns([names.get(name, name) for name in TABLE.column_names])
    target = replace(PANES, schema=table.schema, keys=(names["team"], "window_start", "window_end"))
    sink.refuse(target)
    give(sink, table, target=target)
    give(sink, table, 1, target=target)
    gone = table.slice(0, 1).set_column(table.num_columns - 1, "op", [[-1]]).cast(table.schema)
    give(sink, gone, 2, target=target)
    assert [row["select\n"] for row in stored(sink, sink.table)] == [2]
    assert len(stored(sink, f"{sink.table}_history")) == 5


@pytest.mark.parametrize("key", ["'; DROP TABLE scores; --", "\\.", "\\N", "a\tb\r\n", '{"x": 1}', "%s", "NULL", "é😀"])
def test_row_25_values_are_values_whatever_they_hold(key, sink):
    give(sink, panes(pane(key, 1), pane("", 2)))
    give(sink, panes(pane(key, 3)), 1)
    assert answers(sink) == sorted([(key, 0, 3), ("", 0, 2)], key=repr)
    give(sink, panes(pane(key, 3, op=-1)), 2)
    assert answers(sink) == [("", 0, 2)]


def test_row_26_each_set_of_null_keys_is_withdrawn_by_its_own_statement(sink):
    rows = [pane("red", 1), pane(None, 2), pane("red", 3, None), pane(None, 4, None), pane("blue", 5)]
    give(sink, panes(*rows))
    gone = panes(*({**row, "op": -1} for row in rows[:4]))
    keys = gone.select(list(PANES.keys))
    bounds = {"window_start", "window_end"}
    assert set(null_patterns(keys)) == {
        frozenset(),
        frozenset({"team"}),
        frozenset(bounds),
        frozenset({"team", *bounds}),
    }
    give(sink, gone, 1)
    assert answers(sink) == [("blue", 0, 5)]


@pytest.mark.parametrize("where", ["key", "value", "list"])
def test_row_4_an_answer_with_a_nul_character_stops_and_names_the_column(where, sink):
    target, table = text_panes("plain", "a\x00b")
    named = {"key": "team", "value": "word", "list": "words"}[where]
    rows = table.to_pylist()
    for name in {"team", "word", "words"} - {named}:
        rows[1][name] = rows[0][name]
    if where == "key":
        rows[1]["team"] = "a\x00b"
    bad = pa.Table.from_pylist(rows, schema=target.schema)
    with pytest.raises(SinkError, match=rf"the column '{named}' holds a text with the character U\+0000.*'a\\x00b'"):
        give(sink, bad, target=target)
    assert give(sink, table.slice(0, 1), target=target), "nothing of it was written"
    assert len(stored(sink, sink.table)) == 1


def test_row_4_late_rows_show_it_as_a_sign(sink):
    schema = LATES.schema.insert(1, pa.field("words", pa.list_(pa.string())))
    row = {"team": "a\x00b", "words": ["\x00", "\\u0000", None], "late_windows": [{"start": None, "end": None}]}
    give(sink, pa.Table.from_pylist([row], schema=schema), target=replace(LATES, schema=schema))
    (found,) = stored(sink, sink.table)
    assert (found["team"], found["words"]) == ("a␀b", ["␀", "\\u0000", None])


def test_a_text_that_speaks_of_the_character_is_not_taken_for_one(sink):
    target, table = text_panes("\\u0000", "\\\\u0000")
    give(sink, table, target=target)
    assert [row["words"][0] for row in stored(sink, sink.table)] == ["\\u0000", "\\\\u0000"]


def test_a_key_too_long_for_an_index_stops_with_what_to_do(sink):
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=10_000))
    with pytest.raises(SinkError, match=r"(?s)index row.*shorten the key before the window") as stopped:
        give(sink, panes(pane(long, 1)))
    assert not isinstance(stopped.value, SinkDown)
    target, table = text_panes(long * 1_000)
    give(replace(sink, table=f"{sink.table}_2"), table, target=replace(target, sink="other/panes/0"))


@pytest.mark.parametrize("micros", [-(2**63), -(2**63) + 10, -210_866_803_200_000_001])
def test_a_time_before_those_of_postgres_stops_and_is_not_another_time(micros, sink):
    stamp = pa.array([micros], pa.int64()).cast(SCORES.field("window_start").type)
    table = TABLE.slice(0, 1).set_column(1, "window_start", stamp)
    with pytest.raises(SinkError, match=r"(?s)out of range.*4713 BC"):
        give(sink, table)


def test_the_last_time_there_is_can_be_written(sink, server):
    stamp = pa.array([2**63 - 1], pa.int64()).cast(SCORES.field("window_end").type)
    give(sink, TABLE.slice(0, 1).set_column(2, "window_end", stamp))
    assert server.ask(f"SELECT window_end::text FROM {sink.table}") == [("294247-01-10 04:00:54.775807+00",)]


def test_decimals_of_every_size_come_back(server, schema):
    numbers = random.Random(7)
    for precision, scale in [(1, 0), (1, 1), (5, 2), (9, 4), (12, 3), (18, 9), (38, 0), (38, 10), (38, 38), (37, 36)]:
        sizes = [numbers.randrange(10 ** numbers.randint(0, precision)) for _ in range(50)]
        digits = [0, 10**precision - 1, *sizes]
        made = [Decimal((sign, tuple(map(int, str(one))), -scale)) for one in digits for sign in (0, 1)]
        sent = [None, *(one or abs(one) for one in made)]
        table = pa.table({"number": list(range(len(sent))), "value": pa.array(sent, pa.decimal128(precision, scale))})
        place = f"{schema}.decimals_{precision}_{scale}"
        server.ask(f"CREATE TABLE {place} (number bigint, value {declared(table.schema.field('value').type)})")
        with server.connect() as connection:
            append(connection, place, table, None)
        back = [value for (value,) in server.ask(f"SELECT value FROM {place} ORDER BY number")]
        assert list(map(str, back)) == list(map(str, sent))


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
rows_of_all = st.lists(
    st.fixed_dictionaries({
        "text": texts | st.none(), "raw": st.binary(max_size=5) | st.none(),
        "number": st.integers(-(2**63), 2**63 - 1) | st.none(), "real": st.floats(allow_nan=False) | st.none(),
        "yes": st.booleans() | st.none(), "day": st.dates() | st.none(),
        "stamp": st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)) | st.none(),
        "words": st.lists(texts | st.none(), max_size=3) | st.none(),
    }), max_size=10,
)  # fmt: skip
ROWS = pa.schema([
    ("number", pa.int64()), ("text", pa.string()), ("raw", pa.binary()), ("real", pa.float64()), ("yes", pa.bool_()),
    ("day", pa.date32()), ("stamp", pa.timestamp("us", tz="UTC")), ("words", pa.list_(pa.string())),
])  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows_of_all, st.integers(0, 3))
def test_whatever_is_sent_comes_back(server, rows, skipped):
    sent = [{**row, "stamp": row["stamp"] and row["stamp"].replace(tzinfo=UTC)} for row in rows]
    columns = ", ".join(f"{field.name} {declared(field.type)}" for field in ROWS)
    # A slice begins in the middle of its buffers.
    table = pa.Table.from_pylist(sent, schema=ROWS).slice(skipped)
    with server.connect() as connection:
        connection.execute(f"CREATE TEMPORARY TABLE sent ({columns})")
        append(connection, "sent", table, None)
        found = connection.execute("SELECT * FROM sent").fetchall()
    assert [dict(zip(ROWS.names, row, strict=True)) for row in found] == table.to_pylist()


def test_many_rows_go_in_several_chunks(sink, monkeypatch):
    monkeypatch.setattr("penstock.connectors.postgres.copy._CHUNK_ROWS", 7)
    monkeypatch.setattr("penstock.connectors.postgres.copy._CHUNK_BYTES", 300)
    many = panes(*(pane(f"team-{number}", number) for number in range(100)))
    give(sink, many)
    give(sink, panes(*(pane(f"team-{number}", number, op=-1) for number in range(50))), 1)
    assert [points for _, _, points in answers(sink)] == sorted(range(50, 100), key=lambda number: f"team-{number}")
