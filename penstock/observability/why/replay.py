"""A run played again: the events of each batch, under the clocks that were written down, by the reference's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.checkpoint.identity import Identity, read_identity, refuse_foreign
from penstock.errors import did_you_mean
from penstock.model.windows import Custom, EventPair, Session
from penstock.observability.why.batches import Batch, kept_batches, newest_before, numbers
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.events import Again, arrivals, keys_of, reached, refuse_unread, rows_of_key, value_text
from penstock.observability.why.traced_windows import Watched
from penstock.plan.graph import Flow, flow_of
from penstock.plan.operators.enrich import Enrich
from penstock.plan.stages import Input, Plan, RowStage
from penstock.quarantine.replay import FOLDER, Inbox
from penstock.reference.aggregates import Record
from penstock.reference.engine import ReferenceRun
from penstock.reference.stage import WindowStage
from penstock.reference.window_assignment import forget, take
from penstock.runtime.batch import Tick
from penstock.storage.local import Store
from penstock.types.timestamps import MIN_TIME, plus, show, to_datetime

Key = tuple[str, ...]
_KEYS = 200  # that are looked at to find one that was meant


@dataclass
class Replay:
    """A pipeline, one of its stages of windows, and the batches that can be played."""

    flow: Flow
    stage: int
    again: Again
    batches: list[Batch]
    rows: int = field(default=0, init=False)

    @property
    def plan(self) -> Plan:
        """The windows."""
        plan = self.flow.stages[self.stage]
        assert isinstance(plan, Plan)
        return plan

    @property
    def alone(self) -> bool:
        """Whether the windows read sources and no other stage, so that one key can be played without the others."""
        return not self.flow.above(self.stage)

    def watched(self, key: Key, upto: int | None = None) -> Watched:
        """The windows of a key, played up to a batch."""
        batches = [one for one in self.batches if upto is None or one.number <= upto]
        if self.alone:
            machine = Watched(self.plan)
            for batch in batches:
                _step(machine, batch, self.stage, self._of_key(batch, key))
            return machine
        return self._stages(batches)

    def _of_key(self, batch: Batch, key: Key) -> list[Record]:
        found: list[Record] = []
        for one, chunk in self.again.chunks(batch):
            if one.source.name in self.flow.own_sources(self.stage):
                self.rows += len(chunk.offsets)
                there = reached(self.plan, one, chunk, batch.now)
                found += there.records(self.plan, rows_of_key(self.plan, there.ready, key))
        return found

    def _stages(self, batches: list[Batch]) -> Watched:
        """The windows after other stages: all that is before them is played, every key of it."""
        run = ReferenceRun(self.plan)
        numbers = [self.flow.stages.index(stage) for stage in run.flow.stages]
        machine = Watched(self.plan)
        last = run.stages[-1]
        assert isinstance(last, WindowStage)
        last.machine = machine
        for batch in batches:
            machine.batch = batch.number
            run.clock.stages = [batch.watermark(number) for number in numbers]
            run.clock.watermark = MIN_TIME
            read = {one.source.name for one in run.flow.inputs}
            found = [
                a for one, chunk in self.again.chunks(batch) if one.source.name in read for a in arrivals(one, chunk)
            ]
            self.rows += len(found)
            run.batch(found, Tick(batch.now))
        return machine

    def some_keys(self) -> Iterator[Key]:
        """Some of the keys that the batches have, to find the one that was meant."""
        seen: set[Key] = set()
        for batch in reversed(self.batches):
            for one, chunk in self.again.chunks(batch):
                if self.alone and len(seen) < _KEYS and one.source.name in self.flow.own_sources(self.stage):
                    seen |= keys_of(self.plan, reached(self.plan, one, chunk, batch.now).ready)
            if len(seen) >= _KEYS or not self.alone:
                break
        yield from sorted(seen)

    def refuse_older(self, start: int, what: str) -> None:
        """Refuse a window of which events may have come before the first batch that is kept."""
        first, plan = self.batches[0], self.plan
        if first.number == 0:
            return
        near = {Session: "gap", EventPair: "distance"}.get(type(plan.window), "")
        sure = self.alone and not isinstance(plan.window, Custom)
        newest = plus(newest_before(self.batches), getattr(plan.window, near) if near else 0)
        if not sure or newest >= start:
            raise Unexplained(
                f"{what} is older than what is kept",
                f"the batches {numbers(self.batches)} can be played again, and events up to {show(newest)} had come "
                "before them",
                f"ask for a window after {show(newest)}, or leave the file out: penstock why CHECKPOINT says what the "
                "record alone has"
                if sure
                else "leave the file out: penstock why CHECKPOINT says what the record alone has",
            )


def replay_of(pipeline: Pipeline, store: Store, stage: int | None = None) -> Replay:
    """A pipeline and its checkpoint, made ready to be played."""
    identity = identity_at(store)
    refuse_foreign(store.root, identity, pipeline.name, pipeline.flow, None)
    flow = pipeline.flow.rebuilt(_unlimited)
    number = stage_of(flow, stage)
    needed = flow_of((flow.stages[number],))
    refuse_unread(needed)
    for one in needed.stages:
        if isinstance(one, RowStage) and isinstance(one.operator, Enrich):
            raise Unexplained(
                f"the windows come after {one.label}, which asks the outside",
                "to play it again would ask again, and be answered as things are now",
                "leave the file out: penstock why CHECKPOINT says what the record alone has",
            )
    batches = kept_batches(store, identity, len(flow.stages))
    if not batches:
        raise Unexplained(
            f"no batch of {store.root} can be played again",
            "the clocks of batches and where each was read to are not there, or too large to be kept",
            "run the pipeline for a while, or leave the file out: penstock why CHECKPOINT says what the record has",
        )
    return Replay(flow, number, Again(needed, Inbox(f"{store.root}/{FOLDER}")), batches)


def identity_at(store: Store) -> Identity:
    """Whose checkpoint this is; refused where it is none."""
    from penstock.checkpoint.status import standing

    standing(store)
    found = read_identity(store)
    assert found is not None
    return found


def stage_of(flow: Flow, asked: int | None) -> int:
    """Which stage is asked about: the one of windows, or the one that was named by its number, from 1 on."""
    windows = [number for number, stage in enumerate(flow.stages) if isinstance(stage, Plan)]
    if asked is not None and asked - 1 in windows:
        return asked - 1
    if asked is None and len(windows) == 1:
        return windows[0]
    said = ", ".join(f"{number + 1} ({stage.label})" for number, stage in enumerate(flow.stages))
    raise Unexplained(
        f"there is no stage {asked} of windows" if asked is not None else f"the pipeline has {len(windows)} windows",
        f"its stages are {said}",
        f"name one of windows: --stage {windows[-1] + 1}" if windows else "ask about a pipeline that has windows",
    )


def key_texts(plan: Plan, key: Sequence[Any]) -> Key:
    """A key of the reference's as texts."""
    types = [column.type for column in plan.key_schema.columns]
    return tuple(
        value_text(to_datetime(value) if kind == "timestamp" and value is not None else value)
        for value, kind in zip(key, types, strict=True)
    )


def refuse_key(plan: Plan, key: Key) -> None:
    """Refuse a key that has more or fewer columns than the windows' keys."""
    if len(key) != len(plan.keys):
        columns = ", ".join(plan.keys) or "nothing"
        raise Unexplained(
            f"the key has {len(key)} values, and the windows are keyed by {columns}",
            "a window is that of one key, with a value for each of its columns",
            "write " + " ".join(f"--key {name.upper()}" for name in plan.keys) if plan.keys else "leave --key out",
        )


def no_such_key(replay: Replay, key: Key) -> Unexplained:
    """No event of a key is in the batches that are kept."""
    known = {" · ".join(one) for one in replay.some_keys()}
    return Unexplained(
        f"no event has the key {' · '.join(key)!r}",
        f"the events of the batches {numbers(replay.batches)} were read again, and none has it",
        did_you_mean(" · ".join(key), known, f"such keys are there: {', '.join(sorted(known)[:5])}" if known else None),
    )


def _step(machine: Watched, batch: Batch, stage: int, records: list[Record]) -> None:
    """One batch, in the order of the model."""
    machine.batch = batch.number
    machine.begin(batch.watermark(stage), batch.now)
    machine.expire()
    take(machine, records)
    machine.evaluate()
    forget(machine)


def _unlimited(one: Input) -> Input:
    """A run that went on was not stopped by bad rows; playing a part of it again must not be, either."""
    return replace(one, source=replace(one.source, max_bad=None))
