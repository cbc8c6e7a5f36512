"""PostgreSQL passes the examiner of every sink with a ledger; what it writes in another form is examined here."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.connectors.sinks import test_examiner as examiner
from tests.unit.connectors.sinks.outputs import ALL_TYPES, BAD, QUARANTINE, TYPED, all_types, give

# They hold U+0000, which PostgreSQL cannot.
OTHERWISE = (
    "test_every_type_is_written_and_each_key_is_a_key_of_its_own",
    "test_values_come_back_as_they_went",
    "test_quarantine_keeps_the_raw_text",
)
globals().update({
    name: test for name, test in vars(examiner).items() if name.startswith("test_") and name not in OTHERWISE
})  # fmt: skip


def all_but_nul() -> pa.Table:
    """Rows of every type, whose texts PostgreSQL can hold."""
    rows = all_types().to_pylist()
    rows[0]["k_text"] = "a'b\"c\n\\.\té😀"
    return pa.Table.from_pylist(rows, schema=ALL_TYPES)


def test_every_type_is_written_and_each_key_is_a_key_of_its_own(sink):
    table = all_but_nul()
    give(sink, table, target=TYPED)
    give(sink, table.slice(1), 1, target=TYPED)
    assert len(examiner.typed_rows(sink)) == table.num_rows
    assert not give(sink, table.slice(1), 1, target=TYPED)


def test_values_come_back_as_they_went(sink):
    table = all_but_nul()
    give(sink, table, target=TYPED)
    full = next(row for row in examiner.typed_rows(sink) if row["number"] is not None)
    in_json = {"items": [1.5, "NaN", "-Infinity", None], "times": ["2026-01-31T12:00:00Z", None], "prices": ["1.20"]}
    for name, value in table.slice(0, 1).drop_columns(["op"]).to_pylist()[0].items():
        assert full[name] == in_json.get(name, value), name
    nans = next(row for row in examiner.typed_rows(sink) if row["real"] not in (None, math.inf))
    assert math.isnan(nans["k_double"])
    assert nans["items"] == []


@pytest.mark.parametrize("name", ALL_TYPES.names[:8])
def test_a_row_of_every_type_of_key_is_withdrawn(name, sink):
    table = all_but_nul()
    give(sink, table, target=TYPED)
    gone = table.set_column(table.num_columns - 1, "op", pa.array([-1] * table.num_rows, pa.int8()))
    present = [number for number, value in enumerate(table[name].to_pylist()) if value is not None]
    give(sink, gone.take(present), 1, target=TYPED)
    left: list[Any] = examiner.typed_rows(sink)
    assert len(left) == table.num_rows - len(present)
    assert all(row[name] is None for row in left)


def test_quarantine_shows_the_character_that_postgres_cannot_hold(sink):
    if sink.history:
        pytest.skip("a history is of panes")
    row = {"source": "web", "partition": "0", "offset": 3, "step": "decode", "reason": "no", "raw": '{"x": \x00"\u2028'}
    give(sink, pa.Table.from_pylist([row], schema=QUARANTINE), target=BAD)
    assert examiner.kept(sink) == [{**row, "raw": '{"x": ␀"\u2028'}]
