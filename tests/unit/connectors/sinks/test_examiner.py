"""The examiner: what every sink with a ledger must pass."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files.sink import read_files
from penstock.connectors.sink_errors import ColumnsDiffer, Fenced, ForeignLineage, OutOfStep, ReplayDiverged, TornBatch
from tests.unit.connectors.sinks.outputs import (
    BAD,
    LATES,
    NOON,
    PANES,
    QUARANTINE,
    TYPED,
    all_types,
    answers,
    batch_of,
    every,
    give,
    late_rows,
    pane,
    panes,
    sinks,
    stored,
)  # fmt: skip

NAMES = ("sqlite", "sqlite history", "duckdb", "duckdb history", "parquet", "json", "memory")
FIRST = panes(pane("red", 1), pane("blue", 2))
FIRST_ANSWERS = [("blue", 0, 2), ("red", 0, 1)]


@pytest.fixture(params=NAMES)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Each sink in turn."""
    return sinks(tmp_path)[request.param]


def test_a_fresh_sink_takes_a_batch(sink):
    assert give(sink, FIRST)
    assert answers(sink) == FIRST_ANSWERS


def test_the_same_replay_is_written_once(sink):
    assert give(sink, FIRST)
    assert not give(sink, FIRST)
    assert not give(sink, panes(pane("blue", 2), pane("red", 1))), "the order of rows does not matter"
    assert answers(sink) == FIRST_ANSWERS
    if "history" in sink.describe() or not hasattr(sink, "history"):
        assert every(sink) == [("blue", 2, 1), ("red", 1, 1)]


def test_another_replay_is_refused(sink):
    give(sink, FIRST)
    with pytest.raises(ReplayDiverged, match=r"replay diverged: .* has batch 0 with 2 rows"):
        give(sink, panes(pane("red", 1), pane("blue", 3)))
    assert answers(sink) == FIRST_ANSWERS


def test_an_older_epoch_is_refused(sink):
    give(sink, FIRST, epoch=2)
    with pytest.raises(Fenced, match=r"epoch 2 has begun|another run has begun"):
        give(sink, panes(pane("red", 9)), 1, epoch=1)
    assert give(sink, panes(pane("red", 5)), 1, epoch=3)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 5)]


def test_a_writer_that_slept_while_another_began_writes_nothing(sink):
    zombie = sink.open(PANES)
    zombie.begin("L1", 1)
    give(sink, FIRST, epoch=2)
    with pytest.raises(Fenced):
        written_and_committed(zombie, panes(pane("red", 9)))
    zombie.close()
    assert answers(sink) == FIRST_ANSWERS
    assert give(sink, panes(pane("red", 4)), 1, epoch=2), "and the other one goes on"


def written_and_committed(writer: Any, table: pa.Table) -> None:
    """Write a batch without asking first."""
    writer.write(batch_of(1, table), [table])
    writer.commit(batch_of(1, table))


def test_a_ledger_of_another_lineage_is_refused(sink):
    give(sink, FIRST)
    with pytest.raises(ForeignLineage, match="belongs to scores/panes/0 of lineage L1, at batch 0"):
        give(sink, panes(pane("red", 9)), lineage="L2")
    assert answers(sink) == FIRST_ANSWERS


def test_a_second_pipeline_on_one_place_is_refused_and_the_owner_named(sink):
    give(sink, FIRST)
    with pytest.raises(ForeignLineage, match="belongs to scores/panes/0"):
        give(sink, FIRST, target=replace(PANES, sink="other/panes/0"), lineage="L9")


def test_a_takeover_keeps_the_rows_and_shuts_the_other_lineage_out_for_good(sink):
    give(sink, FIRST, 7)
    taking = replace(sink, takeover=True)
    assert give(taking, panes(pane("red", 3)), 0, lineage="L2")
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 3)]
    for old in (sink, taking):
        with pytest.raises((Fenced, ForeignLineage)):
            give(old, panes(pane("red", 8)), 8, lineage="L1", epoch=9)
    assert not give(taking, panes(pane("red", 3)), 0, lineage="L2"), "its own replay is one still"
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 3)]


def test_a_takeover_does_not_make_the_rows_of_another_output_of_the_same_run_its_own(sink):
    """Two stages that have changed places: each would go on with what the other remembers."""
    give(sink, FIRST)
    taking, other = replace(sink, takeover=True), replace(PANES, sink="scores/1.panes/0")
    for claiming in (sink, taking):
        with pytest.raises(ForeignLineage, match="has the rows of scores/panes/0 of this checkpoint"):
            give(claiming, panes(pane("red", 3)), 1, target=other, epoch=2)
    assert answers(sink) == FIRST_ANSWERS
    assert give(taking, panes(pane("red", 4)), 1, target=replace(PANES, sink="scores/panes/other"), epoch=2)


def test_an_empty_batch_is_committed(sink):
    assert give(sink, panes(), 0, parts=[])
    assert not give(sink, panes(), 0, parts=[panes()])
    assert answers(sink) == []


def test_null_is_an_ordinary_key_and_the_global_window_has_no_bounds(sink):
    give(sink, panes(pane(None, 1, None), pane("", 5, None), pane(None, 2, 0)))
    give(sink, panes(pane(None, 3, None, index=1)), 1)
    assert answers(sink) == [("", None, 5), (None, 0, 2), (None, None, 3)]


def test_a_withdrawn_session_goes_and_the_merged_one_stands(sink):
    give(sink, panes(pane("red", 1, 0), pane("red", 2, 8), pane("blue", 4, 0), pane(None, 6, 0)))
    merged = panes(pane("red", 1, 0, op=-1), pane("red", 2, 8, op=-1), pane("red", 3, 0, length=13),
                   pane(None, 6, 0, op=-1))  # fmt: skip
    give(sink, merged, 1)
    assert answers(sink) == [("blue", 0, 4), ("red", 0, 3)]


def test_a_retraction_before_its_new_pane_is_an_update_also_across_parts(sink):
    give(sink, panes(pane("red", 1), pane("blue", 1)))
    again = panes(pane("red", 1, op=-1), pane("red", 2, index=1), pane("blue", 1, op=-1), pane("blue", 7, index=1))
    give(sink, again, 1, parts=[again.slice(0, 1), again.slice(1, 2), again.slice(3)])
    assert answers(sink) == [("blue", 0, 7), ("red", 0, 2)]


def test_history_keeps_every_pane_with_its_op(sink):
    if hasattr(sink, "history") and not sink.history:
        pytest.skip("keeps the current answer alone")
    give(sink, FIRST)
    give(sink, panes(pane("red", 1, op=-1), pane("red", 2, index=1)), 1)
    assert every(sink) == [("blue", 2, 1), ("red", 1, -1), ("red", 1, 1), ("red", 2, 1)]
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 2)]


def test_every_type_is_written_and_each_key_is_a_key_of_its_own(sink):
    table = all_types()
    give(sink, table, target=TYPED)
    give(sink, table.slice(1), 1, target=TYPED)
    rows = typed_rows(sink)
    assert len(rows) == table.num_rows
    assert not give(sink, table.slice(1), 1, target=TYPED)


def typed_rows(sink: Any) -> list[dict[str, Any]]:
    """The current answer with all types."""
    if hasattr(sink, "current"):
        found: list[dict[str, Any]] = sink.current()
    elif hasattr(sink, "format"):
        found = read_files(sink.path, current=True).to_pylist()
    else:
        found = stored(sink, sink.table)
    return found


def test_values_come_back_as_they_went(sink):
    table = all_types()
    give(sink, table, target=TYPED)
    full = next(row for row in typed_rows(sink) if row["number"] is not None)
    nans = next(row for row in typed_rows(sink) if row["real"] not in (None, math.inf))
    if type(sink).__name__ == "Sqlite":
        assert full["k_stamp"] == "2026-01-31 12:00:00.000001"
        assert (full["stamp"], full["day"], full["price"], full["raw"]) == (
            "2026-01-31 12:00:00", "1969-12-31", "1.500", b"")  # fmt: skip
        assert full["items"] == '[1.5,"NaN","-Infinity",null]'
        assert (full["times"], full["prices"]) == ('["2026-01-31T12:00:00Z",null]', '["1.20"]')
        assert nans["real"] == "NaN"
        assert nans["k_double"] == "NaN"
        return
    sent = table.slice(0, 1).drop_columns(["op"]).to_pylist()[0]
    for name, value in sent.items():
        if name == "items":
            assert repr(full[name]) == repr(value)
        else:
            assert full[name] == value, name
    assert math.isnan(nans["k_double"])


def test_late_rows_and_quarantine_are_appended(sink, tmp_path):
    if getattr(sink, "history", False):
        pytest.skip("a history is of panes")
    table = late_rows()
    give(sink, table, target=LATES)
    give(sink, table, 1, target=LATES)
    rows = kept(sink)
    assert [row["late_offset"] for row in rows] == [7, 7]
    missed = rows[0]["late_windows"]
    text = "2026-01-31T12:00:00Z"
    assert missed in (f'[{{"start":"{text}","end":null}}]', *([{"start": one, "end": None}] for one in (NOON, text)))


def test_quarantine_keeps_the_raw_text(sink):
    if getattr(sink, "history", False):
        pytest.skip("a history is of panes")
    row = {"source": "web", "partition": "0", "offset": 3, "step": "decode", "reason": "no", "raw": '{"x": \x00"\u2028'}
    give(sink, pa.Table.from_pylist([row], schema=QUARANTINE), target=BAD)
    assert kept(sink) == [row]


def kept(sink: Any) -> list[dict[str, Any]]:
    """All rows of a sink that appends."""
    if hasattr(sink, "current"):
        found: list[dict[str, Any]] = sink.rows
    elif hasattr(sink, "format"):
        found = read_files(sink.path).to_pylist()
    else:
        found = stored(sink, sink.table)
    return found


def test_other_columns_are_refused_with_the_difference(sink):
    give(sink, FIRST)
    schema = PANES.schema.remove(3).insert(3, pa.field("points", pa.float64())).insert(3, pa.field("plays", pa.int64()))
    with pytest.raises(ColumnsDiffer, match=r"plays is missing; points is .*, not"):
        give(sink, schema.empty_table(), 1, target=replace(PANES, schema=schema))


def test_rows_that_do_not_add_up_are_refused_and_nothing_is_written(sink):
    with pytest.raises(TornBatch, match="has 2 rows by its count, and 1 are there"):
        give(sink, FIRST, parts=[FIRST.slice(1)])
    assert give(sink, FIRST)
    assert answers(sink) == FIRST_ANSWERS


def test_a_checkpoint_older_than_the_sink_is_refused(sink):
    give(sink, FIRST, 5)
    with pytest.raises(OutOfStep, match="is at batch 5 of this lineage and is asked to write batch 3"):
        give(sink, FIRST, 3)


def test_a_sink_older_than_the_checkpoint_is_refused(sink):
    give(sink, FIRST, 5)
    with pytest.raises(OutOfStep, match="is at batch 5 of this lineage, but batch 8 was committed"):
        give(sink, panes(pane("red", 9)), 9, after=8)
    assert give(sink, panes(pane("red", 9)), 9, after=5)


def test_a_sink_that_was_emptied_is_refused_unless_it_may_begin_in_the_middle(sink):
    with pytest.raises(OutOfStep, match="has no batch of this lineage, but batch 8 was committed before batch 9"):
        give(sink, FIRST, 9, after=8)
    assert give(replace(sink, takeover=True), FIRST, 9, after=8)


def test_at_least_once_writes_again(sink):
    for _ in range(3):
        assert give(sink, FIRST, delivery="at_least_once")
    assert answers(sink) == FIRST_ANSWERS
    if not hasattr(sink, "history") or sink.history:
        assert every(sink) == [("blue", 2, 1)] * 3 + [("red", 1, 1)] * 3


def test_at_most_once_writes_nothing_again_even_if_the_rows_never_came(sink):
    with pytest.raises(TornBatch):
        give(sink, FIRST, delivery="at_most_once", parts=[FIRST.slice(1)])
    assert not give(sink, FIRST, delivery="at_most_once")
    assert give(sink, panes(pane("red", 3)), 1, delivery="at_most_once")
    assert answers(sink) == [("red", 0, 3)]


def test_an_exception_in_the_rows_leaves_nothing(sink):
    def failing():
        yield FIRST.slice(0, 1)
        raise OSError("lost block")

    with pytest.raises(OSError, match="lost block"):
        give(sink, FIRST, parts=failing())
    assert give(sink, FIRST)
    assert answers(sink) == FIRST_ANSWERS


def test_the_description_says_what_is_promised(sink):
    assert "exactly once" in sink.describe()
    assert sink.ledgered
    assert sink.place
