"""Every cell of the matrix: form of sink, kind of stream, mode, whether windows fire again and panes are withdrawn."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.connectors import sink_compatibility
from penstock.connectors.console import console
from penstock.connectors.delivery import check_delivery
from penstock.connectors.duckdb import duckdb
from penstock.connectors.files.sink import files
from penstock.connectors.foreach_batch import foreach_batch
from penstock.connectors.memory import memory
from penstock.connectors.postgres.sink import postgres
from penstock.connectors.sink_compatibility import FITS, MODES, REFUSED
from penstock.connectors.sqlite import sqlite
from penstock.errors import PlanError
from tests.unit.connectors.sinks.outputs import BAD, LATES, PANES, ROWS, give, pane, panes, stored

SINKS = {
    "upsert": [sqlite("a.db", table="t"), duckdb("a.duckdb", table="t"), postgres("postgresql:///a", table="t")],
    "history": [
        sqlite("a.db", table="t", history=True),
        duckdb("a.duckdb", table="t", history=True),
        postgres("postgresql:///a", table="t", history=True),
    ],
    "append": [files("out"), files("out", format="json"), memory("m"), console(), foreach_batch(print)],
}
OUTPUTS = {"panes": PANES, "rows": ROWS, "late": LATES, "quarantine": BAD}
CELLS = [(form, kind, mode, refires, withdraws) for form, kind, mode in FITS
         for refires, withdraws in itertools.product((False, True), repeat=2)]  # fmt: skip


def test_the_matrix_is_whole():
    assert set(FITS) == set(itertools.product(SINKS, OUTPUTS, MODES))


@pytest.mark.parametrize(("form", "kind", "mode", "refires", "withdraws"), CELLS)
def test_each_cell_is_taken_or_refused(form, kind, mode, refires, withdraws):
    target = replace(OUTPUTS[kind], mode=mode, refires=refires, withdraws=withdraws)
    for sink in SINKS[form]:
        if FITS[form, kind, mode] == REFUSED:
            with pytest.raises(PlanError) as refused:
                sink.refuse(target)
            assert all((refused.value.what, refused.value.why, refused.value.instead))
        else:
            sink.refuse(target)


def test_discarding_into_an_upsert_names_three_ways_out():
    with pytest.raises(PlanError, match=r"(?s)discarding panes.*\.accumulating\(\).*history=True.*ps\.files"):
        sqlite("a.db", table="t").refuse(replace(PANES, mode="discarding"))


@pytest.mark.parametrize("make", [sqlite, duckdb])
def test_a_discarding_history_has_no_current_table(make, tmp_path):
    sink = make(tmp_path / "x", table="scores", history=True)
    give(sink, panes(pane("red", 1), pane("red", 2, index=1)), target=replace(PANES, mode="discarding"))
    assert [row["points"] for row in stored(sink, "scores_history")] == [1, 2]
    with pytest.raises(Exception, match="scores"):
        stored(sink, "scores")


def test_the_table_of_the_module_is_the_data():
    said = sink_compatibility.__doc__ or ""
    for form in SINKS:
        assert f"| {form} |" in said


@pytest.mark.parametrize("make", [sqlite, duckdb])
@pytest.mark.parametrize("table", ["", "penstock_ledger", "SQLite_x", "a\x00b", None])
def test_a_table_that_cannot_be_is_refused(make, table):
    with pytest.raises(PlanError, match="a table cannot be called"):
        make("a.db", table=table).refuse(PANES)


@pytest.mark.parametrize("make", [sqlite, duckdb])
def test_columns_that_differ_by_case_alone_are_refused(make):
    schema = PANES.schema.append(pa.field("Points", pa.int64()))
    with pytest.raises(PlanError, match="'points' and 'Points' cannot both be written"):
        make("a.db", table="t").refuse(replace(PANES, schema=schema))


@pytest.mark.parametrize(("sink", "said"), [
    (sqlite(":memory:", table="t"), "is not a file"),
    (duckdb(":memory:", table="t"), "is not a file"),
    (duckdb("md:cloud", table="t"), "is not a file"),
    (files("x", format="csv"), "the format 'csv'"),
    (memory(""), "is not a name"),
    (console(rows=0), "0 rows"),
    (foreach_batch(3), "cannot be called"),
])  # fmt: skip
def test_a_sink_that_cannot_be_is_refused(sink, said):
    with pytest.raises(PlanError, match=said):
        sink.refuse(PANES)


def test_without_duckdb_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("penstock.connectors.duckdb.find_spec", lambda name: None)
    with pytest.raises(PlanError, match=r"pip install 'penstock\[duckdb\]'"):
        duckdb("a.duckdb", table="t").refuse(PANES)


def test_at_most_once_needs_a_ledger():
    check_delivery(memory("m"), "at_most_once")
    check_delivery(console(), "exactly_once")
    with pytest.raises(PlanError, match="at most once cannot be promised for the console"):
        check_delivery(console(), "at_most_once")


def test_one_place_has_one_name(tmp_path):
    near, far = sqlite(tmp_path / "a.db", table="Scores"), sqlite(tmp_path / "x" / ".." / "a.db", table="scores")
    assert near.place == far.place
    assert near.place != sqlite(tmp_path / "a.db", table="other").place
    assert files(tmp_path).place == files(f"{tmp_path}/").place
    assert console().place is None
