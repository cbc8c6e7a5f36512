"""Which machine plays which rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
from penstock.reference.operators.deduplicate import DedupMachine
from penstock.reference.operators.enrich import EnrichMachine
from penstock.reference.operators.join import JoinMachine
from penstock.reference.operators.passthrough import Passing
from penstock.reference.operators.pattern import Matching
from penstock.reference.operators.process import KeyedMachine
from penstock.reference.operators.protocol import Machine
from penstock.reference.operators.table_join import TableMachine
from penstock.reference.operators.temporal_join import TemporalMachine
from penstock.reference.operators.top_n import TopMachine

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
