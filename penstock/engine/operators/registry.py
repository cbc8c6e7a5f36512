"""Which operator in columns plays which rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.operators.deduplicate import Deduplicated
from penstock.engine.operators.enrich import Enriching
from penstock.engine.operators.join import JoinOperator
from penstock.engine.operators.passthrough import Passing
from penstock.engine.operators.pattern.step import Matching
from penstock.engine.operators.process.step import Keyed
from penstock.engine.operators.protocol import Operator
from penstock.engine.operators.table_join import TableOperator
from penstock.engine.operators.temporal_join import TemporalOperator
from penstock.engine.operators.top_n import TopOperator
from penstock.plan.operators.deduplicate import Dedup
from penstock.plan.operators.enrich import Enrich
from penstock.plan.operators.join import Join
from penstock.plan.operators.match import Match
from penstock.plan.operators.passthrough import Pass
from penstock.plan.operators.process import Process
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import TemporalJoin
from penstock.plan.operators.top_n import Top
from penstock.plan.stages import RowStage, Side

OPERATORS: dict[type, Callable[[Any, Sequence[Side]], Operator]] = {
    Pass: lambda rule, sides: Passing(),
    Process: Keyed,
    Dedup: Deduplicated,
    Top: TopOperator,
    Join: JoinOperator,
    TemporalJoin: TemporalOperator,
    TableJoin: TableOperator,
    Enrich: lambda rule, sides: Enriching(rule, sides[0]),
    Match: lambda rule, sides: Matching(rule, sides[0]),
}


def operator_of(stage: RowStage) -> Operator:
    """The operator of a stage, made ready for columns."""
    return OPERATORS[type(stage.operator)](stage.operator, stage.sides)
