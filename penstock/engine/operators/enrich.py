"""Enrichment in columns: each different question of a batch is looked up or asked once, and its answer dealt out."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import Keys, canonical, hashes, key_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.enrich_cache import Answered, Runs, last, new_run, run_read, run_said, since, tidy
from penstock.engine.operators.process.state import user_rows
from penstock.engine.operators.protocol import BadRow, Emitted, Outgoing
from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.row_runs import written
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import concat_arrays, take_arrays, take_column
from penstock.plan.operators.enrich import STEP, Enrich
from penstock.plan.stages import MAIN, Side
from penstock.runtime.async_calls import Asker
from penstock.types.arrow import arrow_schema, one_batch, to_arrow
from penstock.types.timestamps import MAX_TIME, plus


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


class Enriching:
    """Enrichment made ready for columns; the memory is what is remembered of answers."""

    def __init__(self, rule: Enrich, side: Side, answerer: Answerer | None = None) -> None:
        self.rule, self.side = rule, side
        self.asks, self.answer = arrow_schema(rule.asks(side)), arrow_schema(rule.answer)
        self.made = arrow_schema(rule.outputs((side,))[MAIN])
        self.answerer: Answerer = Directly(rule) if answerer is None else answerer

    def answered_by(self, answerer: Answerer) -> Enriching:
        """The same, with another one to give the answers."""
        return Enriching(self.rule, self.side, answerer)

    def start(self) -> Runs:
        """Nothing is remembered."""
        return ()

    def step(self, memory: Runs, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Play one batch."""
        (rows,) = arrivals
        runs = () if self.rule.cache is None else since(memory, plus(clock.now, -self.rule.cache))
        ended = clock.watermark == MAX_TIME  # then nobody asks any more
        if not len(rows):
            return Emitted(() if ended else runs, {}, (None,), (), MAX_TIME)
        questions = tuple(canonical(rows.batch.column(name)) for name in self.asks.names)
        hashed = hashes(questions, len(rows))
        codes = key_codes(questions, hashed)
        first = np.full(int(codes.max()) + 1, len(rows))
        first[codes[::-1]] = np.arange(len(rows))[::-1]
        answers, runs = self._answers(runs, take_arrays(questions, first), hashed[first], np.argsort(first), clock)
        outputs, bad = self._dealt(rows, answers, codes)
        return Emitted(() if ended else runs, outputs, (None,), bad, MAX_TIME)

    def saved(self, memory: Runs, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        parts = written((run.part for run in memory), known)
        return Saved(framed({"answers": [run_said(run) for run in memory]}), parts)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        return tuple(run[0] for run in unframed(head)[0]["answers"])

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Runs:
        """The memory that was saved."""
        return tuple(run_read(run, fetch) for run in unframed(head)[0]["answers"])

    def held(self, memory: Runs) -> int:
        """How many answers are remembered."""
        return sum(run.live for run in memory)

    def _answers(
        self, runs: Runs, asked: Keys, hashed: np.ndarray, came: np.ndarray, clock: Clock
    ) -> tuple[Answers, Runs]:
        """The answer to each different question, remembered or asked, and what is remembered from now on.

        What is asked is asked in the order in which it came.
        """
        n = len(hashed)
        place = np.full(n, -1)
        found: list[Answers] = []
        total = 0
        for run in runs:
            held = run.part.get()
            mine, theirs = held.find(asked, hashed)
            mine, theirs = mine[theirs >= run.gone], theirs[theirs >= run.gone]
            place[mine] = total + np.arange(len(mine))
            total += len(mine)
            columns = [column.take(pa.array(theirs)) for column in held.answers]
            found.append(Answers(self._batch(columns), pa.nulls(len(mine), pa.string())))
        missing = came[place[came] < 0]
        if len(missing):
            open_ = take_arrays(asked, missing)
            fresh = self.answerer.answers(pa.RecordBatch.from_arrays(list(open_), schema=self.asks))
            place[missing] = total + np.arange(len(missing))
            found.append(fresh)
            if self.rule.cache is not None:
                runs = self._remembered(runs, open_, fresh, clock.now)
        return joined_answers(found).take(place), runs

    def _remembered(self, runs: Runs, questions: Keys, answers: Answers, now: int) -> Runs:
        """What is remembered, with new answers; failures are asked again, and of too many the oldest leave."""
        good = np.flatnonzero(answers.failed.is_null().to_numpy(zero_copy_only=False))
        if len(good):
            times = np.full(len(good), now, dtype=np.int64)
            columns = take_arrays(answers.batch.columns, good)
            runs = (*runs, new_run(Answered(take_arrays(questions, good), columns, times)))
        return tidy(last(runs, self.rule.cache_rows))

    def _dealt(self, rows: Rows, answers: Answers, codes: np.ndarray) -> tuple[dict[str, Outgoing], tuple[BadRow, ...]]:
        """Every row with its answer, in the order of the rows, and those that have none."""
        bad: tuple[BadRow, ...] = ()
        batch, times = rows.batch, rows.times
        if self.rule.on_error == "quarantine" and answers.failed.null_count < len(answers):
            failed = answers.failed.is_valid().to_numpy(zero_copy_only=False)[codes]
            places = np.flatnonzero(failed)
            reasons = answers.failed.take(pa.array(codes[places])).to_pylist()
            bad = tuple(BadRow(0, row, STEP, why) for row, why in zip(places.tolist(), reasons, strict=True))
            good = np.flatnonzero(~failed)
            batch, times, codes = take_column(batch, good), times[good], codes[good]
        columns = [*batch.columns, *take_arrays(answers.batch.columns, codes)]
        made = pa.RecordBatch.from_arrays(columns, schema=self.made)
        return ({MAIN: Outgoing(made, times)} if len(times) else {}), bad

    def _batch(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(list(columns), schema=self.answer)
