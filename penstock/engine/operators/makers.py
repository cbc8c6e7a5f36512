"""Which operator in columns plays which rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.dedup import Dedup
from penstock.engine.operators.dedup import Deduplicated
from penstock.engine.operators.enrich import Enriching
from penstock.engine.operators.join import JoinOperator
from penstock.engine.operators.keyed import Keyed
from penstock.engine.operators.operator import Operator
from penstock.engine.operators.passing import Passing
from penstock.engine.operators.pattern import Matching
from penstock.engine.operators.table_join import TableOperator
from penstock.engine.operators.temporal import TemporalOperator
from penstock.engine.operators.top import TopOperator
from penstock.enrich import Enrich
from penstock.join import Join
from penstock.keyed import Process
from penstock.match import Match
from penstock.passing import Pass
from penstock.stage import RowStage, Side
from penstock.table_join import TableJoin
from penstock.temporal import TemporalJoin
from penstock.top import Top

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
