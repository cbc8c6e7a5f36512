"""What classes of a plan and their fields are called in checkpoints, whatever the code calls them.

A checkpoint tells a plan's triggers by their names, and what each stage does by a digest of all names and values in
it. These names are written down here, so that a class or a field may be renamed: its line stays as it is.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from penstock.expressions.nodes import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compare,
    In,
    IsNull,
    Literal,
    Name,
    Negate,
    Not,
    Or,
)
from penstock.model.aggregates import Aggregate
from penstock.model.triggers import (
    After,
    AtExpiry,
    AtWatermark,
    Both,
    Count,
    Either,
    Every,
    Never,
    Repeat,
    Then,
    Until,
    When,
)
from penstock.model.windows import Calendar, Custom, EventPair, Global, Session, Sliding
from penstock.plan.operators.deduplicate import Dedup
from penstock.plan.operators.enrich import Asking, Enrich
from penstock.plan.operators.join import Bound, Join, Together, Within
from penstock.plan.operators.match import Match
from penstock.plan.operators.passthrough import Pass
from penstock.plan.operators.pattern import Pattern, Skip, Step
from penstock.plan.operators.process import Process
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import TemporalJoin
from penstock.plan.operators.top_n import Top
from penstock.plan.row_steps import Map, MapBatches, Project, Where
from penstock.types.schema import Column, Schema

# The name of a class, then those of its fields that are compared, in the order in which the class has them.
NAMES: dict[type, tuple[str, ...]] = {
    # triggers
    AtWatermark: ("AtWatermark", "early", "late"),
    Count: ("Count", "n"),
    After: ("After", "delay"),
    Every: ("Every", "period", "offset"),
    When: ("When", "predicate", "once"),
    AtExpiry: ("AtExpiry",),
    Never: ("Never",),
    Either: ("Either", "first", "second"),
    Both: ("Both", "first", "second"),
    Then: ("Then", "first", "second"),
    Until: ("Until", "first", "second"),
    Repeat: ("Repeat", "again"),
    # windows
    Sliding: ("Sliding", "size", "slide", "offset"),
    Calendar: ("Calendar", "unit", "zone"),
    Session: ("Session", "gap"),
    Global: ("Global",),
    EventPair: ("EventPair", "distance"),
    Custom: ("Custom", "assigned", "merged"),
    # what is computed, and expressions
    Aggregate: ("Aggregate", "kind", "column", "by", "size", "q", "where", "function", "type"),
    Name: ("Name", "column"),
    Literal: ("Literal", "value", "type"),
    Compare: ("Compare", "op", "left", "right"),
    Arithmetic: ("Arithmetic", "op", "left", "right"),
    Negate: ("Negate", "operand"),
    And: ("And", "left", "right"),
    Or: ("Or", "left", "right"),
    Not: ("Not", "operand"),
    IsNull: ("IsNull", "operand", "negated"),
    In: ("In", "operand", "choices", "negated"),
    Case: ("Case", "branches", "otherwise"),
    Cast: ("Cast", "operand", "type"),
    Call: ("Call", "function", "args"),
    # steps of rows
    Where: ("Where", "predicate"),
    Project: ("Project", "columns", "keep"),
    Map: ("Map", "function", "schema"),
    MapBatches: ("MapBatches", "function", "schema"),
    Schema: ("Schema", "columns"),
    Column: ("Column", "name", "type"),
    # what other stages than windows do
    Pass: ("Pass",),
    Process: ("Process", "function", "ordered", "deleted"),
    Dedup: ("Dedup", "within", "keep", "lateness"),
    Top: ("Top", "n", "by", "best", "window", "lateness"),
    Join: ("Join", "how", "reach", "lateness", "prefix"),
    Within: ("Within", "low", "high"),
    Bound: ("Bound", "shift", "column"),
    Together: ("Together", "window"),
    TemporalJoin: ("TemporalJoin", "how", "lateness", "deleted", "prefix"),
    TableJoin: ("TableJoin", "how", "deleted", "prefix", "broadcast"),
    Enrich: ("Enrich", "function", "answer", "on", "asking", "cache", "cache_rows", "on_error"),
    Asking: ("Asking", "concurrency", "timeout", "retries", "backoff", "give_up"),
    Match: ("Match", "pattern", "output", "skip", "timeouts", "lateness", "keep", "limit"),
    Pattern: ("Pattern", "steps", "length"),
    Step: ("Step", "name", "condition", "contiguity", "negated", "least", "most", "may_lack", "eager", "inner"),
    Skip: ("Skip", "kind", "name"),
}


def persisted_name(kind: type) -> str:
    """What a class is called in checkpoints; one of the user's is called as it is."""
    return NAMES[kind][0] if kind in NAMES else kind.__qualname__


def persisted_fields(value: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass that are compared, under the names that checkpoints have for them, and their values."""
    compared = [field.name for field in fields(value) if field.compare]
    names = NAMES[type(value)][1:] if type(value) in NAMES else compared
    return [(name, getattr(value, field)) for name, field in zip(names, compared, strict=True)]
