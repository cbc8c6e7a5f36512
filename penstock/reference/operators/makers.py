"""Which machine plays which rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.dedup import Dedup
from penstock.enrich import Enrich
from penstock.join import Join
from penstock.keyed import Process
from penstock.match import Match
from penstock.passing import Pass
from penstock.reference.operators.dedup import DedupMachine
from penstock.reference.operators.enrich import EnrichMachine
from penstock.reference.operators.join import JoinMachine
from penstock.reference.operators.keyed import KeyedMachine
from penstock.reference.operators.operator import Machine
from penstock.reference.operators.passing import Passing
from penstock.reference.operators.pattern import Matching
from penstock.reference.operators.table_join import TableMachine
from penstock.reference.operators.temporal import TemporalMachine
from penstock.reference.operators.top import TopMachine
from penstock.stage import RowStage, Side
from penstock.table_join import TableJoin
from penstock.temporal import TemporalJoin
from penstock.top import Top

MACHINES: dict[type, Callable[[Any, Sequence[Side]], Machine]] = {
    Pass: lambda rule, sides: Passing(),
    Process: KeyedMachine,
    Dedup: DedupMachine,
    Top: TopMachine,
    Join: JoinMachine,
    TemporalJoin: TemporalMachine,
    TableJoin: TableMachine,
    Enrich: EnrichMachine,
    Match: lambda rule, sides: Matching(rule, sides[0]),
}


def machine_of(stage: RowStage) -> Machine:
    """The machine of a stage, without a memory yet."""
    return MACHINES[type(stage.operator)](stage.operator, stage.sides)
