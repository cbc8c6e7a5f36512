"""Who answers the questions of a batch: whoever the operator is given, and what is asked and answered in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import canonical, hashes, key_codes
from penstock.engine.operators.process.state import user_rows
from penstock.engine.windows.partials import concat_arrays, take_column
from penstock.plan.operators.enrich import Enrich
from penstock.runtime.async_calls import Asker
from penstock.types.arrow import one_batch, to_arrow


@dataclass(frozen=True, slots=True)
class Answers:
    """An answer to each question, in order: its columns, and why there is none, or null."""

    batch: pa.RecordBatch
    failed: pa.Array

    def __len__(self) -> int:
        return len(self.failed)

    def take(self, rows: np.ndarray) -> Answers:
        """The answers of these places."""
        return Answers(take_column(self.batch, rows), take_column(self.failed, rows))


class Answerer(Protocol):
    """Gives an answer to each question; the same question in the same batch must be given the same answer."""

    def answers(self, questions: pa.RecordBatch) -> Answers:
        """The answers, in the order of the questions, each of which is there once."""


class Directly:
    """Calls the function."""

    def __init__(self, rule: Enrich) -> None:
        self.rule = rule
        self.asker = Asker(rule)

    def answers(self, questions: pa.RecordBatch) -> Answers:
        """What the function says now."""
        made = self.asker.ask(list(user_rows(questions)))
        nothing = dict.fromkeys(self.rule.answer.names)
        batch = to_arrow([nothing if one.row is None else one.row for one in made], self.rule.answer)
        return Answers(batch, pa.array([one.failed for one in made], pa.string()))


def joined_answers(parts: list[Answers]) -> Answers:
    """Answers one after the other."""
    whole = one_batch(pa.Table.from_batches([part.batch for part in parts]))
    return Answers(whole, pa.concat_arrays([part.failed for part in parts]))


def places(known: pa.RecordBatch, questions: pa.RecordBatch) -> np.ndarray:
    """For each question its place among those that are known, the first of equal ones, or -1."""
    both = concat_arrays([[canonical(column) for column in one.columns] for one in (known, questions)])
    m, n = known.num_rows, questions.num_rows
    codes = key_codes(both, hashes(both, m + n))
    place = np.full(int(codes.max(initial=-1)) + 1, -1)
    place[codes[:m][::-1]] = np.arange(m)[::-1]
    return place[codes[m:]]
