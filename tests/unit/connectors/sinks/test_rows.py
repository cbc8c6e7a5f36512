"""Fingerprints, nets, and texts of values."""

from __future__ import annotations

import doctest
import itertools
import random
import time
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import penstock.credentials
from penstock.connectors.fingerprint import combined, fingerprint, shown
from penstock.connectors.latest_answers import net
from penstock.connectors.text_values import from_json, json_column, json_ready, stamps
from penstock.credentials import shown as redacted
from penstock.engine.shuffle.partition import key_hash
from tests.unit.connectors.sinks.outputs import LATE, ROWS, all_types, give, late_rows, pane, panes, sinks, stored

KEYS = ("team", "window_start", "window_end")


def test_a_fingerprint_does_not_depend_on_order_parts_or_chunks():
    table = pa.concat_tables([all_types(), all_types()])
    order = list(range(table.num_rows))
    random.Random(1).shuffle(order)
    whole = fingerprint(table)
    assert whole == fingerprint(table.take(order)) == fingerprint(table.combine_chunks())
    assert whole == combined([fingerprint(table.slice(0, 3)), fingerprint(table.slice(3))])
    assert fingerprint(table.slice(0, 0)) == 0
    assert combined([]) == 0


def test_a_fingerprint_sees_every_cell():
    table = all_types()
    prints = {fingerprint(table)}
    for number, field in enumerate(table.schema):
        changed = pa.array([None, *table[field.name].to_pylist()[1:]], field.type)
        prints.add(fingerprint(table.set_column(number, field, changed)))
    assert len(prints) == 1 + table.num_columns


def test_a_fingerprint_counts_rows_that_are_equal():
    row = panes(pane("red", 1))
    assert fingerprint(pa.concat_tables([row, row])) == 2 * fingerprint(row) % 2**64 != fingerprint(row)


def test_a_fingerprint_is_the_sum_of_the_shard_hashes_in_which_texts_count_by_their_own():
    table = pa.table({"team": ["red", None], "points": [1, 2]})
    red = int(np.uint64(key_hash(("red",))).astype(np.int64))
    assert fingerprint(table) == (key_hash((red, 1)) + key_hash((None, 2))) % 2**64


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_a_fingerprint_is_the_same_whether_texts_come_again_in_a_table_or_not(kind):
    texts = pa.array(["red", None, "", "a longer one", None, "blue"] * 1_000, kind)
    table = pa.table({"text": texts, "n": np.arange(len(texts))})
    alone = [fingerprint(table.slice(at, 6)) for at in range(0, table.num_rows, 6)]
    assert fingerprint(table) == combined(alone)
    assert fingerprint(table.slice(1)) == combined([fingerprint(table.slice(1, 5)), *alone[1:]])
    coded = pa.table({"text": texts.dictionary_encode(), "n": np.arange(len(texts))})
    assert fingerprint(coded) == combined(alone)


def test_a_fingerprint_of_nothing_but_nulls_counts_them():
    assert fingerprint(pa.table({"nothing": pa.nulls(5_000)})) == 5_000 * key_hash((None,)) % 2**64


def test_a_fingerprint_is_shown_as_16_digits():
    assert shown(255) == "00000000000000ff"
    assert shown(fingerprint(late_rows())) == shown(fingerprint(late_rows().to_batches()[0]))


def test_the_net_of_a_million_panes_takes_a_moment():
    rows = 1_000_000
    table = pa.table({"team": pa.array(np.arange(rows) % 600_000), "op": pa.array(np.ones(rows, np.int8))})
    began = time.perf_counter()
    upserts, deletes = net(table, ["team"])
    assert (len(upserts), len(deletes)) == (600_000, 0)
    assert time.perf_counter() - began < 5


events = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2)), max_size=30)


@given(events, st.lists(st.integers(0, 30), max_size=4))
def test_the_nets_of_parts_are_the_net_of_the_whole(changes, cuts):
    """A window is shown, withdrawn and shown again; however the batch is cut, the last change stands."""
    truth: dict[tuple[str | None, int], int] = {}
    rows = []
    for number, (team, minute) in enumerate(changes):
        if (team, minute) in truth:
            rows.append(pane(team, truth.pop((team, minute)), minute, op=-1))
        else:
            truth[team, minute] = number
            rows.append(pane(team, number, minute))
    table, held = panes(*rows), {}
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        upserts, deletes = net(table.slice(start, end - start), KEYS)
        for row in deletes.to_pylist():
            held.pop((row["team"], row["window_start"]), None)
        held.update({(row["team"], row["window_start"]): row["points"] for row in upserts.to_pylist()})
    assert {(team, start.minute): points for (team, start), points in held.items()} == truth


@pytest.mark.parametrize("table", [all_types(), late_rows()], ids=["all types", "late"])
def test_every_value_comes_back_from_json(table):
    for field in table.schema:
        sent = table[field.name].to_pylist()
        ready = json_column(table[field.name].combine_chunks())
        assert ready == [json_ready(value) for value in sent]
        back = from_json(ready, field.type)
        assert repr(back.to_pylist()) == repr(sent), field.name


def test_times_sort_as_texts():
    micros = sorted([0, 1, 999_999, 1_000_000, 1_500_000, -1, 1_700_000_000_000_000, 250_000_000_000_000_000])
    texts = stamps(pa.array(micros, pa.timestamp("us", tz="UTC"))).to_pylist()
    assert texts == sorted(texts)
    assert texts[1] == "1970-01-01 00:00:00"


def test_late_rows_have_the_columns_of_the_pipeline():
    import penstock as ps

    targets = pytest.importorskip("penstock.plan.output_schemas")
    stream = ps.events("team string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    plan = stream.select("team", "at").window(ps.tumbling("5 minutes")).aggregate(plays=ps.rows()).plan
    assert targets.output_schema(plan, "late").names[2:] == LATE.names[1:]


@pytest.mark.parametrize(("location", "said"), [
    ("plain/path", "plain/path"),
    ("s3://bucket/x", "s3://bucket/x"),
    ("s3://key:s3cret@bucket/x", "s3://key:***@bucket/x"),
    ("postgresql://u:p%40ss:w@h:5432/db?password=abc&x=1", "postgresql://u:***@h:5432/db?password=***&x=1"),
    ("abfs://c@a.host/x;SharedAccessSignature=zzz", "abfs://c@a.host/x;SharedAccessSignature=***"),
])  # fmt: skip
def test_a_password_is_not_shown(location, said):
    assert redacted(location) == said


def test_the_example_of_redaction_is_true():
    assert doctest.testmod(penstock.credentials).failed == 0


def test_a_small_decimal_has_every_digit_in_sqlite(tmp_path):
    sink = sinks(tmp_path)["sqlite"]
    schema = pa.schema([("price", pa.decimal128(38, 19)), ("points", pa.int64())])
    table = pa.table({"price": [Decimal("1e-19"), Decimal("0"), Decimal("-12.5")], "points": [1, 2, 3]}, schema)
    give(sink, table, target=replace(ROWS, schema=schema))
    found = [row["price"] for row in stored(sink, "scores")]
    assert found == ["0.0000000000000000001", "0.0000000000000000000", "-12.5000000000000000000"]
