"""Laws of patterns: both implementations agree, batches leave no trace, and nothing is held for ever."""

from __future__ import annotations

import pytest
from hypothesis import event, given, strategies as st

from penstock.engine.operators.pattern import buffer, state
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import DataError
from penstock.plan.operators.match import Match
from penstock.reference.aggregates import Record
from penstock.types.timestamps import MAX_TIME
from tests.properties.match_plans import batches, even, overtaking, rules, streams
from tests.properties.matching import COLUMNS, Batch, ByColumn, ByRow, Given, as_rows, outputs, side
from tests.properties.profile import law


def stopped(machine: ByRow | ByColumn, batch: Batch) -> Given | str:
    """What a batch gave, or the sentence with which the run stopped."""
    try:
        return machine.step(list(batch.records), batch.watermark, batch.restart)
    except DataError as error:
        return error.what


@law(200)
@given(rules(), batches() | even(), st.booleans())
def test_engine_and_reference_agree(rule: Match, played: list[Batch], small: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(state, "_LARGE", 2)
            patch.setattr(state, "_SMALL", 1)
            patch.setattr(buffer, "MANY", 1)
        reference, engine = ByRow(rule, side()), ByColumn(rule, side())
        for batch in played:
            expected, found = stopped(reference, batch), stopped(engine, batch)
            assert found == expected
            if isinstance(expected, str):
                return
        assert reference.machine.held() == 0


@law(120)
@given(overtaking(), even())
def test_they_agree_where_matches_wait_for_earlier_ones(rule: Match, played: list[Batch]) -> None:
    reference, engine, waited = ByRow(rule, side()), ByColumn(rule, side()), False
    for batch in played:
        expected = stopped(reference, batch)
        assert stopped(engine, batch) == expected
        waited = waited or any(of.waiting for of in reference.machine.memory.keys.values())
    event("a match waited" if waited else "none waited")
    assert reference.machine.held() == 0


@law(100)
@given(rules(), batches(), st.sampled_from([(), ("kind", "x"), ("x",), ("price", "team"), ("at",)]))
def test_they_agree_whatever_the_key(rule: Match, played: list[Batch], keys: tuple[str, ...]) -> None:
    by = side(keys)
    reference, engine = ByRow(rule, by), ByColumn(rule, by)
    for batch in played:
        expected, found = stopped(reference, batch), stopped(engine, batch)
        assert found == expected
        if isinstance(expected, str):
            return


@law(150)
@given(rules(limit=100_000, lateness=(0,)), streams(14), st.data())
def test_batches_leave_no_trace(rule: Match, records: list[Record], data: st.DataObject) -> None:
    """As long as no event comes behind W, any split into batches and any W give the same rows."""
    newest = max((record.time for record in records), default=0)
    whole = ByColumn(rule, side())
    ordered = sorted(records, key=lambda record: (record.partition, record.offset))
    try:
        expected = [whole.step(ordered, -(2**63)), whole.step([], MAX_TIME)]
    except DataError:
        return
    parted, got, left, watermark = ByColumn(rule, side()), [], ordered, -(2**63)
    while left:
        size = data.draw(st.integers(1, 5))
        now, left = left[:size], left[size:]
        got.append(parted.step(now, watermark, restart=data.draw(st.booleans())))
        ahead = min((record.time for record in left), default=newest)
        watermark = max(watermark, data.draw(st.integers(-2, ahead)) if ahead >= -2 else watermark)
    got.append(parted.step([], MAX_TIME))
    assert not any(one.late for one in got)
    for name in rule.outputs([side()]):
        assert outputs(got, name) == outputs(expected, name)
    assert sorted(bad for one in got for bad in one.bad) == sorted(bad for one in expected for bad in one.bad)


@law(100)
@given(rules(limit=100_000) | overtaking(), batches() | even())
def test_rows_are_never_behind_what_was_promised(rule: Match, played: list[Batch]) -> None:
    """No row is earlier than W of the batch before, or than what the memory then said it would hold back."""
    engine, promised = ByColumn(rule, side()), -(2**63)
    for batch in played:
        try:
            out = engine.engine.step(engine.memory, (as_rows(list(batch.records), COLUMNS),), Clock(batch.watermark, 0))
        except DataError:
            return
        for outgoing in out.outputs.values():
            assert not len(outgoing.times) or outgoing.times.min() >= promised
        engine.memory, promised = out.memory, min(batch.watermark, out.hold)
