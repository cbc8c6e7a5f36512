"""Law: same input, same bytes, whatever the order of blobs and however often it stops; and keys may share a hash."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from penstock.engine import in_process, stage
from penstock.engine.columns import keys
from penstock.engine.ingest.row_steps import SourceBatch
from penstock.engine.ingest.windows import Blob
from penstock.engine.state.cache import CACHE
from penstock.engine.state.snapshot import Saved, restored, saved
from penstock.engine.windows.step import Stepped
from penstock.plan.stages import Plan
from penstock.runtime.batch import Arrival
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.plans import plans
from tests.properties.profile import law
from tests.properties.streams import Step, play, scripts

Blobs = list[Blob]


def ipc(table: pa.Table) -> bytes:
    """A table as bytes; its chunks are no part of what it says."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


@contextmanager
def stepping(arrange: Callable[[Blobs], Blobs]) -> Iterator[list[tuple[bytes, bytes, Saved]]]:
    """Blobs reach the step as arranged; what each step gives is written down: panes, late rows, memory."""
    real, written = stage.step, []

    def step(compiled: object, memory: object, blobs: Blobs, clock: object) -> Stepped:
        stepped = real(compiled, memory, arrange(list(blobs)), clock)
        written.append((ipc(stepped.panes), ipc(stepped.late), saved(compiled, stepped.memory)))
        return stepped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "step", step)
        yield written


def bytes_of(plan: Plan, steps: list[Step], arrange: Callable[[Blobs], Blobs] = list) -> list[tuple[object, ...]]:
    with stepping(arrange) as written:
        script = Script(plan, "columnar")
        for step in steps:
            play(script, step)
    return [*written, (repr(script.run.snapshot()[1]).encode(),)]


@law(50)
@given(plans(), scripts(), st.randoms(use_true_random=False))
def test_shuffled_blobs_give_the_same_bytes(plan: Plan, steps: list[Step], chance: object) -> None:
    def shuffled(blobs: Blobs) -> Blobs:
        chance.shuffle(blobs)  # type: ignore[attr-defined]
        return blobs

    assert bytes_of(plan, steps, shuffled) == bytes_of(plan, steps)


@law(50)
@given(plans(), scripts())
def test_a_run_that_was_restored_goes_on_with_the_same_bytes(plan: Plan, steps: list[Step]) -> None:
    through = [Step(step.rows, step.now, step.watermark, restart=False) for step in steps]
    stopping = [Step(step.rows, step.now, step.watermark, restart=True) for step in steps]
    assert bytes_of(plan, stopping) == bytes_of(plan, through)


@law(40)
@given(plans(), scripts())
def test_memory_read_back_is_written_as_the_same_bytes(plan: Plan, steps: list[Step]) -> None:
    script = Script(plan, "columnar")
    for step in steps:
        play(script, step)
        once = saved(script.run.compiled, script.run.memory)
        CACHE.clear()
        again = restored(script.run.compiled, once.head, once.parts.__getitem__)
        assert saved(script.run.compiled, again) == once


class Cut(in_process.ColumnarRun):
    """A run in which each partition's rows come in several batches, cut where they are told to be."""

    every = 2

    def _batches(self, arrivals: list[Arrival]) -> list[tuple[SourceBatch, list[Arrival]]]:
        return [
            (SourceBatch(b.source, b.partition, b.offsets[i : i + self.every], b.rows.slice(i, self.every)),
             mine[i : i + self.every])
            for b, mine in super()._batches(arrivals) for i in range(0, max(len(mine), 1), self.every)
        ]  # fmt: skip


@law(40)
@given(plans(), scripts(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_partitions_cut_into_many_blobs_give_the_same_answers(
    plan: Plan, steps: list[Step], every: int, chance: object
) -> None:
    def shuffled(blobs: Blobs) -> Blobs:
        chance.shuffle(blobs)  # type: ignore[attr-defined]
        return blobs

    whole = Script(plan, "columnar")
    written = []
    for arrange in (list, shuffled):
        cut = Script(plan, "columnar")
        cut.run = Cut(plan)
        cut.run.every = every
        with stepping(arrange) as found:
            outcomes = [play(cut, Step(step.rows, step.now, step.watermark)) for step in steps]
        written.append(found)
    assert written[0] == written[1]
    for step, outcome in zip(steps, outcomes, strict=True):
        same_outcome(play(whole, step), outcome)
    assert whole.W == cut.W


@contextmanager
def colliding(weaken: Callable[[np.ndarray], np.ndarray]) -> Iterator[None]:
    """Every module of the engine hashes keys badly."""
    real = keys.hashes
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("penstock.engine")]
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, value in list(vars(module).items()):
                if value is real:
                    patch.setattr(module, name, lambda columns, rows: weaken(real(columns, rows)))
        yield


WEAK = {
    "one hash for all": lambda h: np.zeros_like(h),
    "two hashes": lambda h: h & np.uint64(1),
    "the greatest hash": lambda h: np.full_like(h, np.uint64(2**64 - 1)),
}


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(40)
@given(plans(), scripts())
def test_keys_that_share_a_hash_are_told_apart(
    weaken: Callable[[np.ndarray], np.ndarray], plan: Plan, steps: list[Step]
) -> None:
    with colliding(weaken):
        reference, script = Script(plan, "reference"), Script(plan, "columnar")
        for step in steps:
            same_outcome(play(reference, step), play(script, step))
            assert reference.run.open_windows() == script.run.open_windows()


def test_the_collision_is_real() -> None:
    with colliding(WEAK["one hash for all"]):
        from penstock.engine.ingest import pre_aggregate

        assert pre_aggregate.hashes((pa.array(["a", "b"]),), 2).tolist() == [0, 0]
