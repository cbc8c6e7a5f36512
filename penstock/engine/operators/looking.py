"""What do rows give that each find one row of a table, or none: joined, padded, or beside the others?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join_output import Given, Joined
from penstock.engine.operators.protocol import Outgoing
from penstock.engine.operators.version_table import Table
from penstock.engine.state.rows import Stored
from penstock.plan.operators.join_schema import right_columns
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import UNMATCHED, TemporalJoin
from penstock.plan.stage import MAIN, Side


class Lookup:
    """What rows give that each find one row of a table, or none."""

    def __init__(self, rule: TemporalJoin | TableJoin, sides: Sequence[Side]) -> None:
        left, right = sides
        named = right_columns(right, rule.prefix, () if rule.deleted is None else (rule.deleted,))
        schemas = rule.outputs(sides)
        self.joined = Joined(sides, schemas[MAIN], named)
        self.unmatched = Joined(sides, left.schema, {}) if UNMATCHED in schemas else None

    def outgoing(self, asking: Stored | None, times: np.ndarray, table: Table) -> dict[str, Outgoing]:
        """The outputs, in the order of times and places."""
        given: list[Given] = []
        alone: list[Given] = []
        if asking is not None and len(asking):
            missing = np.ones(len(asking), dtype=bool)
            for mine, stored, theirs in table.find(asking, times):
                missing[mine] = False
                given.append(Given(asking, mine, stored, theirs, asking.kept.times[mine]))
            rows = np.flatnonzero(missing)
            (given if self.unmatched is None else alone).append(
                Given(asking, rows, None, None, asking.kept.times[rows])
            )
        outputs = {MAIN: self.joined.outgoing(given)}
        return outputs if self.unmatched is None else {**outputs, UNMATCHED: self.unmatched.outgoing(alone)}


def deletions(rows: Rows, deleted: str | None) -> np.ndarray | None:
    """Which rows say that a row of the table is gone; null does not."""
    if deleted is None or not len(rows):
        return None
    return rows.batch.column(deleted).fill_null(False).to_numpy(zero_copy_only=False)
