"""What the outside has answered, written down before anybody sees it: a batch that is played again hears the same.

penstock/answers/LINEAGE/000000000007-1-3-0    batch 7, stage 1, shard 3: questions, answers and failures

A file is made once, and the first holds, whichever attempt of a task made it. Should the questions of a batch that is
played again be others, as after a change of the code, those that are new go into a second file. The files of a batch
are removed when the batch after it is committed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.operators.enrich import Answerer, Answers, joined_answers, places
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.errors import PlanError
from penstock.plan.graph import Flow
from penstock.plan.operators.enrich import Enrich
from penstock.plan.stages import RowStage
from penstock.runtime.failpoints import reached
from penstock.storage.arrow import store_at
from penstock.storage.local import CheckpointError, local_path
from penstock.types.arrow import one_batch

FOLDER = "penstock/answers"
POINT = "task:answered"
_FAILED = "failed"
_SEAL = 16


@dataclass(frozen=True, slots=True)
class WrittenDown:
    """Answers of one shard of a stage in a batch: those that are written down, or else asked for and written."""

    place: str
    batch: int
    stage: int
    shard: int
    asked: Answerer

    def answers(self, questions: pa.RecordBatch) -> Answers:
        """The answers as they are written down."""
        store, number = store_at(self.place), 0
        known = questions.slice(0, 0)
        found: list[Answers] = []
        while True:
            where = places(known, questions)
            if (where >= 0).all():
                return joined_answers(found).take(where)
            name = f"{self.batch:012d}-{self.stage}-{self.shard}-{number}"
            data = store.read(name)
            if data is None:
                missing = questions.filter(pa.array(where < 0))
                store.create(name, _sealed(missing, self.asked.answers(missing)))
                reached(POINT, self.batch)
                data = store.read(name)
                assert data is not None
            asked, answers = _unsealed(data, f"{self.place}/{name}")
            known = one_batch(pa.Table.from_batches([known, asked]))
            found.append(answers)
            number += 1


def forget_answers(place: str, before: int) -> None:
    """Remove the answers of all batches before one."""
    store = store_at(place)
    for name in store.names(""):
        if int(name.partition("-")[0]) < before:
            store.delete(name)


def answers_place(flow: Flow, checkpoint: str, staging: str | None) -> str | None:
    """Where the tasks of a pipeline write answers down, or None where nothing is asked; refused where they cannot.

    Each lineage has a folder of its own there.
    """
    if not any(isinstance(stage, RowStage) and isinstance(stage.operator, Enrich) for stage in flow.stages):
        return None
    local = local_path(checkpoint)
    if local is not None:
        return f"{local}/{FOLDER}"
    beside = [] if staging is None else [f"{staging.rstrip('/')}-answers"]
    for place in (f"{checkpoint.rstrip('/')}/{FOLDER}", *beside):
        if _reached(place):
            return place
    raise PlanError(
        f"enrich cannot write its answers down under the checkpoint {checkpoint}",
        "tasks write what they were answered before anybody sees it, so that a batch that is played again is the same, "
        "and from Python this place cannot be reached",
        'name a place that they reach: ps.pipeline(..., staging="s3://bucket/staging"); the answers lie beside it',
    )


def _reached(place: str) -> bool:
    """Whether Python can list a place, there or not."""
    try:
        store_at(place).names("")
    except (OSError, ValueError, NotImplementedError, CheckpointError):  # pyarrow's errors are some of these
        return False
    return True


def _sealed(questions: pa.RecordBatch, answers: Answers) -> bytes:
    """Questions and answers as bytes, with a checksum before them."""
    made = pa.RecordBatch.from_arrays(
        [*answers.batch.columns, answers.failed], schema=answers.batch.schema.append(pa.field(_FAILED, pa.string()))
    )
    data = packed({}, {"questions": questions, "answers": made})
    return hashlib.blake2b(data, digest_size=_SEAL).digest() + data


def _unsealed(data: bytes, where: str) -> tuple[pa.RecordBatch, Answers]:
    if data[:_SEAL] != hashlib.blake2b(data[_SEAL:], digest_size=_SEAL).digest():
        raise CheckpointError(
            f"the answers in {where} are damaged",
            "their checksum does not match what they hold: they were cut short or changed",
            "restore the file from a copy; if no sink has this batch yet, remove the file, and it is asked anew",
        )
    _, tables = unpacked(data[_SEAL:])
    asked, made = (one_batch(tables[name]) for name in ("questions", "answers"))
    names = made.schema.names
    answers = pa.RecordBatch.from_arrays(made.columns[:-1], schema=made.schema.remove(len(names) - 1))
    return asked, Answers(answers, made.columns[-1])
