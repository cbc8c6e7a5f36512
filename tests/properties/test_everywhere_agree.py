"""Laws of what goes to every shard: both engines agree, any number of shards gives the same, and a row counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import penstock as ps
from penstock.engine.ingest.row_steps import SourceBatch, stamped_rows
from penstock.engine.operators.process import rules as kept_rules
from penstock.engine.stage import RowEngine
from penstock.engine.state.cache import CACHE
from penstock.engine.windows.lifecycle import Clock
from penstock.model.panes import Given
from penstock.plan.stages import RowStage
from penstock.runtime.batch import Counts, Tick
from penstock.testing import Script
from penstock.types.arrow import from_arrow, to_arrow
from tests.properties.profile import law
from tests.properties.test_same_bytes import WEAK, colliding
from tests.properties.test_stages_agree import check, source, steps, windows


def two_sources() -> st.SearchStrategy[Any]:
    """Batches in which each row says which of the two sources it is of."""
    return steps(both=True).map(lambda drawn: [([{"@source": "one", **row} for row in rows], *rest)
                                               for rows, *rest in drawn])  # fmt: skip


class Ruled(ps.KeyedFunction):
    """Tells which rules it sees, and since which batches; a timer does so again."""

    output = "k string, saw string"
    seen = ps.value("long", default=0, ttl="50 us")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.seen += 1
        context.timer(context.time)
        self.tell(key, context)

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        self.tell(key, context)

    def tell(self, key: Any, context: Any) -> None:
        rules = context.rules
        saw = sorted(repr((name, dict(rule), rules.batch(name))) for name, rule in rules.items())
        context.emit(k=key, saw=f"{self.seen} {len(rules)} {saw}")


def rules() -> ps.Stream:
    """A row of the second source is a rule; the ids are few, and some are null."""
    return source("two", "then").select("k", "x", limit="v", gone="v > 5")


def ruled(ordered: bool = False, stream: ps.Stream | None = None) -> ps.Rows:
    named = ["k", "x"] if stream is None else "k"
    return (
        source("one")
        .key_by("k")
        .process(Ruled(), ordered=ordered, rules=rules() if stream is None else stream, rule_key=named, deleted="gone")
    )


def table(broadcast: bool) -> ps.Rows:
    changes = source("two", "then").select("k", w="v", gone="v > 5")
    left = source("one").select("k", "v", "at")
    return left.join_table(changes, on="k", how="left", deleted="gone", broadcast=broadcast)


STAGES: dict[str, Callable[[], ps.Panes | ps.Rows]] = {
    "rules": ruled,
    "rules, in order": lambda: ruled(ordered=True),
    "rules, windows": lambda: windows(ruled()),
    "rules of a stage": lambda: ruled(stream=rules().dedup("k", within="8 us")),
    "table everywhere": lambda: table(broadcast=True),
    "table everywhere, windows": lambda: windows(table(broadcast=True)),
}


@law(80)
@given(st.data(), st.sampled_from(list(STAGES)))
def test_both_engines_agree(data: st.DataObject, name: str) -> None:
    flow = STAGES[name]()
    reference, columnar = Script(flow, "reference"), Script(flow, "columnar")
    for rows, now, restart in data.draw(two_sources()):
        note(f"{rows} at {now}")
        if restart:
            reference.restart()
            columnar.restart()
        behind = {time for row in rows if (time := row.get("at", row.get("then"))) < reference.run.clock.stages[0]}
        check(reference, columnar, reference.batch(rows, now=now), columnar.batch(rows, now=now), behind)
    for _ in reference.flow.stages:
        check(reference, columnar, *(one.batch((), watermark="+inf") for one in (reference, columnar)))


def in_one_partition(drawn: list[Any]) -> Iterator[tuple[list[dict[str, Any]], int, bool]]:
    """The same batches, each source in the order of its rows."""
    for rows, now, restart in drawn:
        yield [{name: value for name, value in row.items() if name != "@partition"} for row in rows], now, restart


class Sharded:
    """A stage on several shards: rows are dealt as the stage says, and each shard remembers by itself."""

    def __init__(self, stage: RowStage, shards: int) -> None:
        self.stage, self.shards, self.engine = stage, shards, RowEngine(stage)
        self.memories = [self.engine.start() for _ in range(shards)]
        self.offsets: dict[str, int] = {}

    def batch(self, rows: Sequence[dict[str, Any]], watermark: int, now: int) -> tuple[list[Given], Counts]:
        """What all shards give, and what all count."""
        counts, dealt = Counts(), [[] for _ in self.memories]
        for number, entry in enumerate(self.stage.entries):
            (one,) = entry.inputs
            mine = [row for row in rows if row.get("@source", "one") == one.source.name]
            plain = [{name: row.get(name) for name in one.source.schema.names} for row in mine]
            first = self.offsets.get(one.source.name, 0)
            self.offsets[one.source.name] = first + len(mine)
            given = SourceBatch(one.source.name, "0", first + np.arange(len(mine)), to_arrow(plain, one.source.schema))
            part = self.engine.arrived(number, one, given, stamped_rows(one, given, now), watermark)
            counts += part.counts + Counts(read=len(mine))
            for blob in self.engine.together([part.blob]):
                for shard, piece in self.engine.dealt(blob, self.shards):
                    dealt[shard].append(self.engine.read(self.engine.written(piece)))
        made: list[Given] = []
        for shard, blobs in enumerate(dealt):
            stepped = self.engine.step(self.memories[shard], blobs, Clock(watermark, now))
            self.memories[shard] = stepped.memory
            counts += stepped.counts
            for name, out in stepped.outputs.items():
                shown = from_arrow(out.batch, self.stage.outputs[name])
                made += [Given(name, row, time) for row, time in zip(shown, out.times.tolist(), strict=True)]
        return made, counts

    def restart(self) -> None:
        """Each shard goes on from its own bytes."""
        kept = [self.engine.saved(memory) for memory in self.memories]
        CACHE.clear()
        self.memories = [self.engine.restored(one.head, one.parts.__getitem__) for one in kept]

    def held(self) -> int:
        return sum(self.engine.held(memory, first=not shard) for shard, memory in enumerate(self.memories))


@law(60)
@given(st.data(), st.sampled_from([ruled, lambda: ruled(ordered=True), lambda: table(broadcast=True)]),
       st.integers(1, 5))  # fmt: skip
def test_any_number_of_shards_gives_the_same_and_counts_a_row_once(
    data: st.DataObject, made: Callable[[], ps.Rows], shards: int
) -> None:
    stage = made().stage
    reference, sharded = Script(stage, "reference"), Sharded(stage, shards)
    for rows, now, restart in in_one_partition(data.draw(two_sources())):
        if restart:
            sharded.restart()
        watermark = reference.W
        said = reference.batch(rows, now=now)
        given, counts = sharded.batch(rows, watermark, now)
        assert sorted(map(repr, given)) == sorted(map(repr, said.rows))
        assert counts == said.counts
        assert counts.conserved(0)
        assert sharded.held() == reference.run.open_windows()


@law(60)
@given(st.data(), st.integers(1, 5))
def test_a_table_everywhere_gives_what_one_by_key_gives(data: st.DataObject, shards: int) -> None:
    one, other = (Sharded(table(broadcast).stage, shards) for broadcast in (False, True))
    for rows, now, restart in in_one_partition(data.draw(two_sources())):
        if restart:
            other.restart()
        (left, counts), (right, same) = one.batch(rows, 0, now), other.batch(rows, 0, now)
        assert sorted(map(repr, left)) == sorted(map(repr, right))
        assert counts == same
        assert one.held() == other.held()


@law(40)
@given(st.data())
def test_the_watermark_is_that_of_the_events_alone(data: st.DataObject) -> None:
    alone, beside = Script(source("one").key_by("k").process(Told())), Script(ruled())
    for rows, now, _ in data.draw(two_sources()):
        alone.batch([row for row in rows if row.get("@source") != "two"], now=now)
        beside.batch(rows, now=now)
        assert alone.W == beside.W
        assert list(beside.partitions()) == [f"one/{name}" for name in alone.partitions()]


class Told(ps.KeyedFunction):
    """Says nothing."""

    output = "k string"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("weaken", WEAK.values(), ids=WEAK.keys())
@law(20)
@given(st.data())
def test_ids_that_share_a_hash_are_told_apart(weaken: Any, data: st.DataObject) -> None:
    with colliding(weaken):
        reference, columnar = Script(ruled(), "reference"), Script(ruled(), "columnar")
        for rows, now, _ in data.draw(two_sources()):
            check(reference, columnar, reference.batch(rows, now=now), columnar.batch(rows, now=now),
                  {row.get("at") for row in rows})  # fmt: skip


def test_rules_are_written_once_and_shown_once_while_they_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, made = ruled().stage, []
    real = kept_rules.Rules
    monkeypatch.setattr(kept_rules, "Rules", lambda given: made.append(1) or real(given))
    engine = RowEngine(stage)
    shard = Sharded(stage, 1)
    shard.engine = engine
    rule = [{"@source": "two", "k": f"r{n}", "x": 0.0, "v": 1, "then": 5} for n in range(100)]
    shard.batch(rule, 0, 1)
    saved = engine.saved(shard.memories[0])
    known = set(engine.parts(saved.head))
    for n in range(5):
        shard.batch([{"k": "a", "v": n, "x": 0.0, "at": 10 + n}], 0, 2 + n)
        again = engine.saved(shard.memories[0], known)
        rules_part = [name for name in engine.parts(again.head) if name in known]
        assert len(rules_part) == 1
        shard.memories = [engine.restored(again.head, {**saved.parts, **again.parts}.__getitem__)]
        saved.parts.update(again.parts)
    assert sum(made) <= 2


def test_nothing_grows_while_rules_come_and_go() -> None:
    script = Script(ruled(), "columnar")
    for n in range(60):
        script.batch([
            {"@source": "two", "k": f"r{n}", "x": 0.0, "v": 1, "then": 10 * n},
            {"@source": "two", "k": f"r{n - 3}", "x": 0.0, "v": 6, "then": 10 * n},
            {"k": "a", "v": n, "x": 0.0, "at": 10 * n},
        ], now=1000 + n)  # fmt: skip
        assert script.run.open_windows() <= 3 + 12


def test_a_tick_alone_says_nothing_of_rules() -> None:
    script = Script(ruled(), "columnar")
    script.run.batch([], Tick(now=5))
    assert script.run.open_windows() == 0
