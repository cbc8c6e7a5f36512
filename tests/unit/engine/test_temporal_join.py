"""Which version was valid at a row's time, how long is what kept, and what is refused: on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.temporal_join import TemporalOperator
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import PlanError
from penstock.plan.operators.temporal_join import temporal_rule
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.temporal_join import TemporalMachine
from penstock.types.schema import schema
from penstock.types.timestamps import parse
from tests.properties.joining import Both, Step

ORDERS = Side("orders", schema("currency string, at timestamp, amount double"), ("currency",))
RATES = Side("rates", schema("currency string, since timestamp, rate double, gone boolean"), ("currency",))


def order(at: str, currency: str | None = "EUR", offset: int = 0) -> Record:
    return Record(parse(at), "orders/0", offset, {"currency": currency, "at": parse(at), "amount": 100.0})


def rate(
    since: str, value: float, offset: int = 0, *, currency: str | None = "EUR", gone: bool | None = None
) -> Record:
    row = {"currency": currency, "since": parse(since), "rate": value, "gone": gone}
    return Record(parse(since), "rates/0", offset, row)


class Playing:
    """A temporal join on both engines, told W and rows."""

    def __init__(self, **said: Any) -> None:
        self.both = Both(temporal_rule(**said), (ORDERS, RATES), TemporalMachine, TemporalOperator)

    def batch(self, orders: list[Record], rates: list[Record], w: str = "-inf") -> list[tuple[str, Any]]:
        self.outs = self.both.play(Step((orders, rates), parse(w), restart=True))
        return [(out.output, out.row.get("rate")) for out in self.outs]

    @property
    def held(self) -> int:
        return self.both.machine.held()


def test_worked_example_16() -> None:
    join = Playing()
    join.batch([], [rate("09:00", 1.08), rate("10:00", 1.10, 1)], w="09:00")
    assert join.batch([order("10:00:00"), order("09:59:59", offset=1)], [], w="09:30") == []
    join.batch([], [], w="10:30")
    paid = [(out.row["at"], round(out.row["amount"] * out.row["rate"], 2)) for out in join.outs]
    assert paid == [(parse("09:59:59"), 108.00), (parse("10:00:00"), 110.00)]


def test_an_order_waits_until_the_watermark_has_passed_its_time() -> None:
    join = Playing()
    assert join.batch([order("10:00")], [rate("09:00", 1.0)]) == []
    assert join.batch([], [rate("10:00", 2.0, 1)], w="10:00") == []
    assert join.batch([], [], w="10:00:00.000001") == [("rows", 2.0)]
    assert [out.time for out in join.outs] == [parse("10:00")]


def test_versions_that_come_out_of_order_are_put_in_their_place() -> None:
    join = Playing()
    join.batch([order("10:00"), order("10:30", offset=1)], [rate("10:20", 3.0)])
    join.batch([], [rate("09:00", 1.0, 1)])
    join.batch([], [rate("09:50", 2.0, 2)])
    assert join.batch([], [], w="11:00") == [("rows", 2.0), ("rows", 3.0)]


def test_of_versions_with_equal_times_the_last_arrival_wins() -> None:
    join = Playing()
    join.batch([], [rate("09:00", 1.0), rate("09:00", 2.0, 1)])
    assert join.held == 1
    join.batch([order("10:00")], [rate("09:00", 3.0, 2)])
    assert join.held == 2
    assert join.batch([], [], w="10:01") == [("rows", 3.0)]


def test_a_deletion_ends_a_version_and_a_later_version_begins_again() -> None:
    join = Playing(deleted="gone")
    changes = [rate("09:00", 1.0), rate("10:00", 0.0, 1, gone=True), rate("11:00", 2.0, 2, gone=False)]
    join.batch([order("09:30"), order("10:30", offset=1), order("11:30", offset=2)], changes)
    assert join.batch([], [], w="12:00") == [("rows", 1.0), ("unmatched", None), ("rows", 2.0)]


def test_a_key_that_was_deleted_is_forgotten() -> None:
    join = Playing(deleted="gone")
    join.batch([], [rate("09:00", 1.0), rate("10:00", 0.0, 1, gone=True)])
    join.batch([], [rate("10:00", 0.0, 2, gone=True)])
    assert join.held == 2
    join.batch([], [], w="10:00")
    assert join.held == 0


@pytest.mark.parametrize(("how", "given"), [("inner", ("unmatched", None)), ("left", ("rows", None))])
def test_an_order_without_a_version(how: str, given: tuple[str, None]) -> None:
    join = Playing(how=how)
    join.batch([order("08:00"), order("09:30", None, 1)], [rate("09:00", 1.0), rate("09:00", 1.0, 1, currency=None)])
    assert join.batch([], [], w="10:00") == [given, given]


def test_a_late_version_changes_nothing_and_one_within_lateness_serves_later_orders() -> None:
    join = Playing(lateness="10 minutes")
    join.batch([order("10:00")], [rate("09:00", 1.0)])
    assert join.batch([], [], w="10:05") == [("rows", 1.0)]
    # It comes behind W: the order that was joined is not corrected, the next one of that time sees it.
    assert join.batch([], [rate("09:58", 2.0, 1), rate("09:54", 9.0, 2)], w="10:05") == []
    assert [(side, record.row["rate"]) for side, record in join.both.late] == [(1, 9.0)]
    assert join.batch([order("10:00", offset=1), order("09:57", offset=2)], [], w="10:05") == [
        ("rows", 1.0), ("rows", 2.0),
    ]  # fmt: skip


def test_a_late_order_is_not_joined() -> None:
    join = Playing()
    assert join.batch([order("09:59:59")], [], w="10:00") == []
    assert [side for side, _ in join.both.late] == [0]


def test_versions_are_kept_as_long_as_the_watermark_may_need_them() -> None:
    join = Playing(lateness="10 minutes")
    join.batch([], [rate("09:00", 1.0), rate("10:00", 2.0, 1), rate("11:00", 3.0, 2)])
    join.batch([], [], w="10:09:59")
    assert join.held == 3
    join.batch([], [], w="10:10")
    assert join.held == 2
    join.batch([], [], w="+inf")
    assert join.held == 0


def test_a_long_run_holds_no_more_than_its_keys_and_its_wait_need() -> None:
    rng, operator = np.random.default_rng(3), TemporalOperator(temporal_rule(deleted="gone"), (ORDERS, RATES))
    memory, held, runs, n = operator.start(), [], [], 200
    for batch in range(120):
        arrivals = []
        for side in (ORDERS, RATES):
            times = np.sort(rng.integers(batch * 10**6, (batch + 1) * 10**6, n))
            keys = pa.array(rng.integers(0, 40, n)).cast(pa.string())
            columns = [keys, pa.array(times).cast(pa.timestamp("us", tz="UTC")), pa.array(rng.random(n))]
            columns += [pa.array(rng.random(n) < 0.1)] * (side is RATES)
            offsets = np.arange(batch * n, batch * n + n)
            arrivals.append(Rows(pa.RecordBatch.from_arrays(columns, names=side.schema.names), times, "s/0", offsets))
        memory = operator.step(memory, arrivals, Clock(batch * 10**6, 0)).memory
        held.append(operator.held(memory))
        runs.append(len(memory.waiting) + len(memory.versions))
    assert max(held) <= 2 * n + 40
    assert max(runs) < 20


def test_what_it_gives_holds_and_is_bound_by() -> None:
    rule = temporal_rule(deleted="gone", lateness="1 minute", prefix="at_")
    assert rule.check((ORDERS, RATES)) == ()
    outputs = rule.outputs((ORDERS, RATES))
    assert list(outputs) == ["rows", "unmatched"]
    assert outputs["rows"].names == ("currency", "at", "amount", "at_since", "at_rate")
    assert rule.holds((ORDERS, RATES)) == (
        "rows of orders until W has passed their time",
        "of each key the version of rates that was valid at W less 1 minute, and all later ones",
    )
    assert rule.binding((ORDERS, RATES))["temporal_join"] == "gone"


REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "kind": ({"how": "full"}, "temporal_join has no kind 'full'", "inner, left", 'how="inner"'),
    "deleted": ({"deleted": "rate"}, "names a double", "whether it is gone", "a column of booleans"),
    "unknown": ({"deleted": "gon"}, "the column 'gon'", "its columns are", "did you mean 'gone'"),
    "a key": ({"deleted": "currency"}, "names a key", "whether it is gone", "no key"),
    "prefix": ({"prefix": None}, "prefix None", "before the names", "prefix="),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_temporal_join_that_cannot_be_right_is_refused(name: str) -> None:
    said, what, why, instead = REFUSED[name]
    with pytest.raises(PlanError) as refused:
        temporal_rule(**said).check((ORDERS, RATES))
    assert what in refused.value.what
    assert why in refused.value.why
    assert instead in refused.value.instead
