"""Laws of temporal and table joins as of the others, and of what all of them save: the same bytes after any stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from penstock.engine.operators.join import JoinOperator
from penstock.engine.operators.table_join import TableOperator
from penstock.engine.operators.temporal_join import TemporalOperator
from penstock.engine.state.cache import Cache
from penstock.plan.operators.join import Join
from penstock.plan.operators.table_join import TableJoin, table_rule
from penstock.plan.operators.temporal_join import TemporalJoin, temporal_rule
from penstock.reference.operators.join import JoinMachine
from penstock.reference.operators.table_join import TableMachine
from penstock.reference.operators.temporal_join import TemporalMachine
from penstock.types.timestamps import MAX_TIME
from tests.properties.joining import LEFT, RIGHT, Both, Step, counted, split, steps
from tests.properties.profile import law
from tests.properties.test_joins_agree import rules, small_runs, us
from tests.properties.test_same_bytes import WEAK, colliding

SIDES = (LEFT, RIGHT)
temporal = st.builds(
    lambda how, lateness, deleted: temporal_rule(how=how, lateness=us(lateness), deleted=deleted, prefix="r_"),
    st.sampled_from(["inner", "left"]),
    st.sampled_from([0, 0, 3, 12]),
    st.sampled_from(["gone", None]),
)


tables = st.builds(
    lambda how, deleted: table_rule(how=how, deleted=deleted, prefix="r_"),
    st.sampled_from(["inner", "left"]),
    st.sampled_from(["gone", None]),
)


def both(rule: TemporalJoin | TableJoin | Join) -> Both:
    if isinstance(rule, Join):
        return Both(rule, SIDES, JoinMachine, JoinOperator)
    if isinstance(rule, TableJoin):
        return Both(rule, SIDES, TableMachine, TableOperator)
    return Both(rule, SIDES, TemporalMachine, TemporalOperator)


@law(300)
@given(temporal | tables, steps(max_batches=9), st.integers(2, 4), st.sampled_from([4, 10**6]))
def test_columns_agree_with_the_reference(rule: Any, script: list[Step], alike: int, largest: int) -> None:
    with small_runs(alike, largest):
        pair = both(rule)
        for step in script:
            pair.play(step)


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(60)
@given(temporal | tables, steps())
def test_keys_that_share_a_hash_are_told_apart(weaken: Any, rule: Any, script: list[Step]) -> None:
    with colliding(weaken):
        pair = both(rule)
        for step in script:
            pair.play(step)


@law(60)
@given(temporal, steps())
def test_a_temporal_join_holds_nothing_after_the_end(rule: Any, script: list[Step]) -> None:
    pair = both(rule)
    for step in [*script, Step(([], []), MAX_TIME)]:
        pair.play(step)
    assert pair.machine.held() == 0


@law(150)
@given(st.data(), temporal, steps(patient=True, ended=True))
def test_how_rows_are_cut_changes_no_temporal_join(data: st.DataObject, rule: Any, script: list[Step]) -> None:
    one, two = both(rule), both(rule)
    whole = [out for step in script for out in one.play(step)]
    parts = [out for step in data.draw(split(script)) for out in two.play(step)]
    assert not one.late
    assert not two.late
    assert counted(whole) == counted(parts)


@law(100)
@given(st.data(), tables, steps())
def test_a_table_does_not_depend_on_how_its_changes_are_cut(data: st.DataObject, rule: Any, script: list[Step]) -> None:
    changes = [Step(([], step.arrivals[1]), step.watermark) for step in script]
    asking = Step(([record for step in script for record in step.arrivals[0]], []), 0)
    one, two = both(rule), both(rule)
    for step in changes:
        one.play(step)
    for step in data.draw(split(changes)):
        two.play(step)
    assert counted(one.play(asking)) == counted(two.play(asking))


@law(100)
@given(rules() | temporal | tables, steps(max_batches=9), st.integers(2, 4))
def test_a_join_that_was_restored_goes_on_with_the_same_bytes(rule: Any, script: list[Step], alike: int) -> None:
    with small_runs(alike, 10**6):
        through, stopping = both(rule), both(rule)
        for step in script:
            through.play(replace(step, restart=False))
            stopping.play(replace(step, restart=True))
            assert through.operator.saved(through.memory) == stopping.operator.saved(stopping.memory)


@law(60)
@given(rules() | temporal | tables, steps())
def test_a_cache_that_holds_nothing_only_costs_time(rule: Any, script: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.engine.state.rows.CACHE", Cache(0))
        pair = both(rule)
        for step in script:
            pair.play(replace(step, restart=True))


@law(60)
@given(rules() | temporal | tables, steps(max_batches=9))
def test_parts_that_are_known_are_not_written_again(rule: Any, script: list[Step]) -> None:
    pair, known = both(rule), set()
    for step in script:
        pair.play(step)
        new = pair.operator.saved(pair.memory, known).parts
        assert known.isdisjoint(new)
        known |= new.keys()
        assert set(pair.operator.parts(pair.operator.saved(pair.memory).head)) <= known
