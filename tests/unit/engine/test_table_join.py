"""What does a row meet in a table that changes: the last row of its key, as it stands; on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.table_join import TableOperator
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import PlanError
from penstock.plan.operators.table_join import table_rule
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.table_join import TableMachine
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.joining import Both, Step

ORDERS = Side("orders", schema("customer long, amount double"), ("customer",))
CUSTOMERS = Side("customers", schema("id long, name string, gone boolean"), ("id",))


def order(customer: int | None, time: int = 0, offset: int = 0) -> Record:
    return Record(time, "orders/0", offset, {"customer": customer, "amount": 1.0})


def change(key: int | None, name: str, offset: int, *, gone: bool | None = None) -> Record:
    return Record(offset, "customers/0", offset, {"id": key, "name": name, "gone": gone})


class Playing:
    """A join with a table on both engines."""

    def __init__(self, **said: Any) -> None:
        self.both = Both(table_rule(**said), (ORDERS, CUSTOMERS), TableMachine, TableOperator)

    def batch(self, orders: list[Record], changes: list[Record], w: int = 0) -> list[tuple[str, Any]]:
        self.outs = self.both.play(Step((orders, changes), w, restart=True))
        return [(out.output, out.row.get("name")) for out in self.outs]


def test_a_row_sees_the_table_after_the_changes_of_its_batch() -> None:
    join = Playing()
    assert join.batch([order(1)], [change(1, "ann", 0)]) == [("rows", "ann")]
    assert join.batch([order(1)], [change(1, "bob", 1)]) == [("rows", "bob")]
    assert join.both.machine.held() == 1


def test_the_last_arrival_wins_whatever_its_time() -> None:
    join = Playing()
    assert join.batch([order(1)], [change(1, "ann", 5), change(1, "bob", 6)]) == [("rows", "bob")]
    assert join.batch([order(1)], [change(1, "cid", 1)]) == [("rows", "cid")]


def test_a_deletion_removes_and_deleting_twice_is_fine() -> None:
    join = Playing(deleted="gone")
    join.batch([], [change(1, "ann", 0)])
    assert join.batch([order(1)], [change(1, "ann", 1, gone=True)]) == [("unmatched", None)]
    assert join.batch([order(1)], [change(1, "ann", 2, gone=True)]) == [("unmatched", None)]
    assert join.both.machine.held() == 0
    assert join.batch([order(1)], [change(1, "bob", 3, gone=False)]) == [("rows", "bob")]


@pytest.mark.parametrize(("how", "given"), [("inner", ("unmatched", None)), ("left", ("rows", None))])
def test_null_keys_and_unknown_ones_find_nothing(how: str, given: tuple[str, None]) -> None:
    join = Playing(how=how)
    assert join.batch([order(None), order(2, offset=1)], [change(None, "nobody", 0)]) == [given, given]
    assert join.both.machine.held() == 0


def test_the_watermark_neither_delays_nor_rejects() -> None:
    join = Playing()
    join.batch([], [change(1, "ann", 0)])
    assert join.batch([order(1, time=-5)], [], w=MAX_TIME) == [("rows", "ann")]
    assert [out.time for out in join.outs] == [-5]
    assert join.both.machine.held() == 1


def test_rows_come_in_the_order_of_their_times() -> None:
    join = Playing(how="left")
    join.batch([order(1, time=9), order(1, time=3, offset=1)], [change(1, "ann", 0)])
    assert [out.time for out in join.outs] == [3, 9]


def test_a_table_holds_no_more_than_its_keys() -> None:
    rng, operator, memory = np.random.default_rng(5), TableOperator(table_rule(deleted="gone"), (ORDERS, CUSTOMERS)), ()
    nobody = Rows(
        pa.RecordBatch.from_arrays([pa.array([], pa.int64()), pa.array([], pa.float64())], names=ORDERS.schema.names),
        np.empty(0, dtype=np.int64), "o/0", np.empty(0, dtype=np.int64),
    )  # fmt: skip
    for batch in range(100):
        columns = [pa.array(rng.integers(0, 500, 300)), pa.array(["x"] * 300), pa.array(rng.random(300) < 0.3)]
        times = np.arange(batch * 300, batch * 300 + 300)
        changes = Rows(pa.RecordBatch.from_arrays(columns, names=CUSTOMERS.schema.names), times, "c/0", times)
        memory = operator.step(memory, (nobody, changes), Clock(0, 0)).memory
        assert operator.held(memory) <= 500
        assert len(memory) < 12
        assert sum(run.rows for run in memory) <= 1_500


def test_what_it_gives_holds_and_warns_of() -> None:
    rule = table_rule(deleted="gone")
    assert rule.check((ORDERS, CUSTOMERS)) == ()
    assert rule.outputs((ORDERS, CUSTOMERS))["rows"].names == ("customer", "amount", "name")
    assert rule.holds((ORDERS, CUSTOMERS)) == ("of each key the last row of customers, until its gone is true",)
    assert "grows with its keys" in table_rule().check((ORDERS, CUSTOMERS))[0]
    assert rule.binding((ORDERS, CUSTOMERS))["join_table"] == "gone"


@pytest.mark.parametrize("said", [{"how": "right"}, {"prefix": 1}, {"deleted": "name"}, {"deleted": "no"}])
def test_a_join_with_a_table_that_cannot_be_right_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(PlanError) as refused:
        table_rule(**said).check((ORDERS, CUSTOMERS))
    assert all((refused.value.what, refused.value.why, refused.value.instead))
