"""Enrichment, one row at a time: what is remembered need not be asked again, and the rest is asked together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.plan.operators.enrich import STEP, Enrich
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record, canonical
from penstock.reference.operators.protocol import Bad, Emitted, Out
from penstock.runtime.async_calls import Answer, Asker
from penstock.types.timestamps import MAX_TIME, plus
from penstock.types.validate import for_users

Question = tuple[Any, ...]


class EnrichMachine:
    """Enrichment in progress.

    The memory has for each question that was answered when that was, and the answer, the oldest first.
    """

    def __init__(self, rule: Enrich, sides: Sequence[Side]) -> None:
        (self.side,) = sides
        self.rule, self.asks = rule, rule.asks(self.side)
        self.asker = Asker(rule)
        self.memory: dict[Question, tuple[int, dict[str, Any]]] = {}

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Play one batch."""
        (rows,) = arrivals
        cache = self.rule.cache
        self.memory = {
            question: held for question, held in self.memory.items() if cache is not None and now < plus(held[0], cache)
        }
        answers = {question: Answer(row) for question, (_, row) in self.memory.items()}
        open_ = [question for question in dict.fromkeys(map(self.question_of, rows)) if question not in answers]
        fresh = dict(zip(open_, self.asker.ask([self.asked(question) for question in open_]), strict=True))
        emitted = Emitted()
        for row in rows:
            self.give(row, (answers | fresh)[self.question_of(row)], emitted)
        if cache is not None:
            self.memory |= {question: (now, one.row) for question, one in fresh.items() if one.row is not None}
            self.memory = dict(list(self.memory.items())[-self.rule.cache_rows :])
        if watermark == MAX_TIME:  # the input has ended: nobody asks any more
            self.memory = {}
        return emitted

    def held(self) -> int:
        """How many answers are remembered."""
        return len(self.memory)

    def give(self, row: Record, answer: Answer, emitted: Emitted) -> None:
        """A row with its answer; one without goes to the quarantine, or has nulls."""
        if answer.row is None and self.rule.on_error == "quarantine":
            emitted.bad.append(Bad(0, row, STEP, answer.failed or ""))
        else:
            given = answer.row or dict.fromkeys(self.rule.answer.names)
            emitted.rows.append(Out(MAIN, {**row.row, **given}, row.time))

    def question_of(self, row: Record) -> Question:
        return tuple(canonical(row.row[name]) for name in self.asks.names)

    def asked(self, question: Question) -> dict[str, Any]:
        """A question as the function sees it."""
        return for_users(dict(zip(self.asks.names, question, strict=True)), self.asks)
