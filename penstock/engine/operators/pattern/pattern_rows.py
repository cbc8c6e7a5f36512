"""What matches give: rows of the key, the measures, and when each match began and ended."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.expressions import evaluator
from penstock.engine.operators.pattern.automaton import Automaton
from penstock.engine.operators.pattern.matcher import Key, Play, Whole
from penstock.engine.operators.protocol import Outgoing
from penstock.errors import EvaluationError
from penstock.expressions.nodes import LONG_MAX, LONG_MIN
from penstock.plan.operators.match import TIMEOUTS, unmeasurable
from penstock.plan.operators.measures import Ref
from penstock.plan.stage import MAIN
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import INTEGERS

Matches = list[tuple[Key, Whole]]


class Giving:
    """How the matches of one pattern become rows."""

    def __init__(self, automaton: Automaton) -> None:
        rule, side = automaton.rule, automaton.side
        self.automaton, self.side, self.timeouts = automaton, side, rule.timeouts
        self.schema = arrow_schema(rule.outputs([side])[MAIN])
        # A batch of no columns would not say how many rows it has.
        self.measured = arrow_schema(rule.measured(side)).append(pa.field("@first", self.schema.types[-1]))
        self.measures = [evaluator(one.node, rule.measured(side), name) for name, one in rule.measures(side)]
        self.key_types = [arrow_type(column.type) for column in side.key_schema.columns]

    def outputs(self, play: Play) -> dict[str, Outgoing]:
        """The rows of each output."""
        made = {MAIN: self._rows(play.matches)}
        return {**made, TIMEOUTS: self._rows(play.timeouts)} if self.timeouts else made

    def _rows(self, matches: Matches) -> Outgoing:
        keys = [pa.array([key[n] for key, _ in matches], kind) for n, kind in enumerate(self.key_types)]
        first = pa.array([one.first for _, one in matches], self.schema.types[-1])
        last = pa.array([one.last for _, one in matches], self.schema.types[-1])
        try:
            said = [self._said(ref, matches) for ref in self.automaton.refs]
            batch = pa.RecordBatch.from_arrays([*keys, *said, first], schema=self.measured)
            measures = [measure(batch) for measure in self.measures]
        except EvaluationError as error:
            raise unmeasurable(error) from None
        times = np.array([one.time for _, one in matches], dtype=np.int64)
        return Outgoing(pa.RecordBatch.from_arrays([*keys, *measures, first, last], schema=self.schema), times)

    def _said(self, ref: Ref, matches: Matches) -> pa.Array:
        """The column of what a reference says of each match."""
        slot, *count = self.automaton.value(ref)
        kind = ref.type(self.side.schema, "output")
        values = [one.held[slot] for _, one in matches]
        if count:
            counts = [one.held[count[0]] for _, one in matches]
            values = [total / n if n else None for total, n in zip(values, counts, strict=True)]
        beyond = ref.function == "sum" and kind in INTEGERS
        if beyond and any(value is not None and not LONG_MIN <= value <= LONG_MAX for value in values):
            raise EvaluationError(f"overflow in {ref.name}")
        return pa.array(values, arrow_type(kind))
