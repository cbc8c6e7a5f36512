"""Laws of the memory: how rows lie in runs, and which of them are fetched again, changes no pane and no byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from penstock.engine.state import runs
from penstock.engine.state.cache import CACHE, Cache
from penstock.engine.state.snapshot import Saved, part_names, restored, saved
from penstock.engine.windows import slices
from penstock.plan.stages import Plan
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.plans import plans
from tests.properties.profile import law
from tests.properties.streams import Step, play, scripts


@dataclass(frozen=True)
class Sizes:
    """From which sizes on runs are looked into, made one, and cut: small enough for a few rows to matter."""

    small: int
    share: int
    alike: int
    largest: int
    many: int


sizes = st.builds(
    Sizes,
    st.integers(0, 2),
    st.sampled_from([0, 0, 1]),
    st.integers(2, 4),
    st.sampled_from([1, 2, 5, 10**6]),
    st.integers(1, 3),
)


@contextmanager
def sized(given: Sizes) -> Iterator[None]:
    """Runs of other sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SMALL", given.small)
        patch.setattr(runs, "SHARE", given.share)
        patch.setattr(runs, "ALIKE", given.alike)
        patch.setattr(runs, "LARGEST", given.largest)
        patch.setattr(slices, "LARGEST", given.largest)
        patch.setattr(slices, "MANY_RUNS", given.many)
        yield


@law(150)
@given(plans(), scripts(max_batches=12), sizes)
def test_runs_of_any_size_agree_with_the_reference(plan: Plan, steps: list[Step], given: Sizes) -> None:
    with sized(given):
        reference, script = Script(plan, "reference"), Script(plan, "columnar")
        for step in steps:
            same_outcome(play(reference, step), play(script, step))
            assert reference.run.open_windows() == script.run.open_windows()
            assert reference.run.open_records() == script.run.open_records()


class Store:
    """Parts by name, as a state store keeps them, and how often each was asked for."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def keep(self, given: Saved) -> None:
        named = part_names(given.head)
        assert self.parts.keys().isdisjoint(given.parts)
        self.parts = {name: data for name, data in {**self.parts, **given.parts}.items() if name in named}
        assert set(named) == self.parts.keys()

    def fetch(self, name: str) -> bytes:
        self.fetched.append(name)
        return self.parts[name]


@law(60)
@given(plans(), scripts(max_batches=12), sizes, st.data())
def test_a_memory_saved_in_parts_goes_on_with_the_same_panes_and_bytes(
    plan: Plan, steps: list[Step], given: Sizes, data: st.DataObject
) -> None:
    with sized(given):
        through, stopping, store = Script(plan, "columnar"), Script(plan, "columnar"), Store()
        for step in steps:
            once = Step(step.rows, step.now, step.watermark)
            one, two = play(through, once), play(stopping, once)
            assert list(map(repr, one.panes)) == list(map(repr, two.panes))
            assert list(map(repr, one.late)) == list(map(repr, two.late))
            assert one.counts == two.counts
            diff = saved(stopping.run.compiled, stopping.run.memory, store.parts)
            store.keep(diff)
            assert diff.head == saved(through.run.compiled, through.run.memory).head
            if data.draw(st.booleans()):
                CACHE.clear()
            store.fetched.clear()
            stopping.run.memory = restored(stopping.run.compiled, diff.head, store.fetch)
            assert not store.fetched


@law(50)
@given(plans(), scripts(), sizes)
def test_a_cache_that_holds_nothing_only_costs_time(plan: Plan, steps: list[Step], given: Sizes) -> None:
    with sized(given), pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.engine.state.parts.CACHE", Cache(0))
        reference, script = Script(plan, "reference"), Script(plan, "columnar")
        for step in steps:
            same_outcome(play(reference, step), play(script, Step(step.rows, step.now, step.watermark, restart=True)))
