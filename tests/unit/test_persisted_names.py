"""Every name that lies on disk, in tables of users, or on the way to machines: none follows a rename in the code.

What fails here would be refused, or worse, by what older versions have written. `tests/golden` goes on from that.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.api.progress import Progress
from penstock.checkpoint import clock, enrichment_log, identity, lease, status
from penstock.checkpoint.checksummed_json import FORMAT as SEALED, sealed, unsealed
from penstock.checkpoint.clock import Clocks, read_clock, write_clock
from penstock.checkpoint.compatibility import binding
from penstock.checkpoint.identity import identity_of
from penstock.checkpoint.lease import Owner, take_lease
from penstock.checkpoint.persisted_names import NAMES
from penstock.checkpoint.spark_logs import checked
from penstock.checkpoint.status import Lag, Partition, Standing, Waits, note_waiting
from penstock.connectors import sql, table
from penstock.connectors.files import manifest
from penstock.connectors.files.manifest import Epoch, Manifest
from penstock.connectors.fingerprint import fingerprint, shown
from penstock.connectors.kafka import ledger, offsets, records
from penstock.connectors.kafka.ledger import Found
from penstock.connectors.kafka.metadata import Log, Topic
from penstock.connectors.kafka.sink import PROGRESS, Kafka
from penstock.connectors.sink import Batch, Ledger
from penstock.coordinator import messages
from penstock.coordinator.sink_router import folder_of
from penstock.coordinator.sink_targets import targets_of
from penstock.engine.shuffle import codec as wire
from penstock.engine.state import codec
from penstock.engine.watermarks import Chunk, ClockState, Spoken
from penstock.expressions.nodes import Node
from penstock.model.triggers import Pair, Trigger
from penstock.model.windows import WindowRule
from penstock.observability import journal as recorder, last_error, run_metadata
from penstock.observability.advise.report import Advice, Recommended
from penstock.observability.health.concern import ABOUT, LEVELS, Concern
from penstock.observability.health.run_state import Situation
from penstock.observability.last_error import Failure, say_failed
from penstock.observability.observation import Observation, observation
from penstock.observability.overview import Overview
from penstock.observability.prometheus import METRICS
from penstock.observability.sampling import Sample
from penstock.observability.time_plane import Dot, Mark, Shown
from penstock.observability.why.event_fate import EventWhy, Place
from penstock.observability.why.from_samples import SampledEvent, SampledPane, SampledWindow
from penstock.observability.why.panes import Event, PaneWhy, WindowWhy, Withdrawn
from penstock.observability.why.trigger_reasons import Because
from penstock.observability.why.watermark_drivers import Driver, Saves
from penstock.plan.graph import flow_of
from penstock.plan.stages import Operator
from penstock.quarantine import replay
from penstock.quarantine.read import Bad
from penstock.quarantine.read_back import NAMES as QUARANTINED
from penstock.runtime.batch import Counts, PartitionClock
from penstock.spark import shard_processor, task_clock
from penstock.spark.state_layout import Kept, written_kept
from penstock.spark.static_log import Held
from penstock.spark.verify import Comparison, Difference, Verified
from penstock.storage.local import LocalStore
from penstock.testing.crash.campaign import Row
from tests.golden.cases import CASES
from tests.unit.persisted import memories

PENSTOCK = Path(ps.__file__).parent
PINNED = json.loads((Path(__file__).parent / "persisted.json").read_text())
CLICKS = "ad string, user string, price double, at timestamp"


def clicks(columns: str = CLICKS, name: str = "clicks") -> ps.Stream:
    return ps.events(columns, name=name).event_time("at", watermark=ps.bounded("5 seconds"))


# What binds a plan


def plans() -> dict[str, Any]:
    """Plans that name every class of a rule between them."""
    rows, by_user = clicks(), clicks().key_by("user")
    sums = {"n": ps.rows(), "price": ps.sum("price", where="ad is not null")}
    one, two = ps.count(3), ps.after("1 second")

    def fired(trigger: ps.Trigger) -> ps.Panes:
        late = by_user.window(ps.tumbling("1 minute"), lateness="1 minute")
        return late.trigger(trigger).accumulating().aggregate(**sums)

    pattern = ps.pattern("high", "price > 100").then("low", "price < high.price").within("5 minutes")
    return {
        "sliding": by_user.window(ps.sliding("1 hour", every="1 minute", offset="5 s")).aggregate(**sums),
        "calendar": by_user.window(ps.calendar("week", zone="Europe/Berlin")).aggregate(**sums),
        "session": by_user.window(ps.session("1 minute")).aggregate(**sums),
        "global": by_user.window(ps.global_window()).trigger(ps.repeat(one)).accumulating().aggregate(**sums),
        "pairs": by_user.window(ps.event_pairs("1 minute")).aggregate(**sums),
        "lists": by_user.window(ps.tumbling("1 minute")).aggregate(
            a=ps.arg_max("ad", "price"), b=ps.top_k("price", 3), c=ps.approx_quantile("price", 0.5)),
        "early and late": fired(ps.at_watermark(early=one | two, late=one & ps.every("1 minute", offset="1 s"))),
        "then": fired(one.then(two)),
        "until": fired(ps.repeat(one).until(ps.when("price > 2", once=True))),
        "expiry": fired(ps.at_expiry()),
        "never": fired(ps.never()),
        "conditions": rows.where("not (price > 1 and ad in ('a', 'b') or -price < 2 * price)").select(
            "user", "at", x="case when ad is null then cast(price as long) else coalesce(length(ad), 1) end",
        ).dedup("user", "x", within="1 hour"),
        "last": rows.dedup("user", within="1 hour", keep="last", lateness="1 s"),
        "top": by_user.top(3, by="price", window=ps.tumbling("1 minute")),
        "between": rows.join(clicks(name="b"), on="user", between=("-1 second", "5 minutes"), prefix="b_"),
        "together": rows.join(clicks(name="b"), on="user", window=ps.tumbling("1 minute"), prefix="b_"),
        "temporal": rows.temporal_join(clicks(name="b"), on="user", prefix="b_"),
        "table": rows.join_table(clicks(name="b"), on="user", prefix="b_", broadcast=True),
        "match": by_user.match(pattern, output={"top": "max(high.price)"}, skip=ps.to_first("high"), timeouts=True),
    }  # fmt: skip


@pytest.mark.parametrize("name", plans())
def test_what_binds_a_plan(name: str) -> None:
    plan = plans()[name]
    assert binding(flow_of((plan.plan if isinstance(plan, ps.Panes) else plan.stage,)), 2) == PINNED["bindings"][name]


def below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield from below(one)
        here = getattr(sys.modules[one.__module__], one.__name__, None) is one  # and not what it was without slots
        if here and is_dataclass(one) and one.__module__.startswith("penstock."):
            yield one


@pytest.mark.parametrize("base", [Node, Trigger, WindowRule, Operator])
def test_each_class_of_a_rule_has_a_name_in_checkpoints(base: type) -> None:
    named = set(below(base))
    assert named
    assert named - {Pair} <= NAMES.keys(), "say what it and its fields are called in checkpoints"


def test_each_field_has_a_name_in_checkpoints() -> None:
    for kind, (_, *names) in NAMES.items():
        assert len(names) == len([field for field in fields(kind) if field.compare]), kind


def test_the_names_are_those_of_the_first_version() -> None:
    assert sorted(map(list, NAMES.values())) == PINNED["names"]


@pytest.mark.parametrize("case", ["windows", "joins", "stages"])
def test_how_memories_lie(case: str, tmp_path: Path) -> None:
    """Heads, kinds of parts, and the columns of their tables."""
    CASES[case].prepare(tmp_path)
    assert memories(CASES[case].made(tmp_path)) == PINNED["memories"][case]


# The files of a checkpoint


def test_where_files_lie() -> None:
    assert (identity.FILE, clock.FOLDER, lease.FOLDER) == (
        "penstock/identity",
        "penstock/clock",
        "penstock/epochs",
    )
    assert (recorder.FOLDER, last_error.FOLDER, run_metadata.FOLDER) == (
        "penstock/monitor",
        "penstock/said",
        "penstock/plan",
    )
    assert (table.FOLDER, enrichment_log.FOLDER) == ("penstock/tables", "penstock/answers")
    assert (status.NAME, replay.FOLDER, replay.PARTITION) == ("penstock/waiting", "penstock/repaired", "repaired")
    found = {name for file in PENSTOCK.rglob("*.py") for name in re.findall(r'"penstock/([a-z]+)"', file.read_text())}
    assert found == {"identity", "clock", "epochs", "monitor", "said", "plan", "tables", "answers", "waiting",
                     "repaired", "now", "staging"}  # fmt: skip


def test_formats() -> None:
    assert (SEALED, codec.FORMAT, wire.FORMAT) == (1, 2, 1)
    assert (ledger.VERSION, manifest.VERSION) == (1, 1)
    assert sealed({"a": 1}) == b'cab2f36fdc4009578015f36051fffe16\n{"a":1,"format":1}\n'
    assert wire.packed({"a": 1}, {}).rstrip() == b'PSTW8\x00\x00\x00{"format": 1, "head": {"a": 1}, "parts": []}'
    framed = codec.framed({"a": 1})
    assert (framed[:4], framed[24:44]) == (b"PSTK", b'{"format":2,"a":1}  ')


def test_the_identity(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    made = identity_of(store, "clicks", flow_of((plans()["session"].plan,)), None, 2)
    held = unsealed((tmp_path / "penstock/identity").read_bytes(), "")
    assert held == {"format": 1, "name": "clicks", "lineage": made.lineage, "shards": 2, "binding": made.binding}


def test_the_clock(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    spoken = {("s", "0"): Spoken(5, 6, 7, 8, (Chunk(np.array([1, 2]), np.array([3, 4]), False),))}
    clocks = Clocks(1, ClockState(2, 3, 4, spoken, (9,)), Counts(read=1), {"s": [1, 2]}, 3, False, True, {"x": 1}, 4,
                    [["s", "0", 5, 2, False, 7]], "digest", [["s", "0", 1, 2]], ["a note"],
                    {"1: windows": 4})  # fmt: skip
    write_clock(store, "lineage", clocks)
    (file,) = (tmp_path / "penstock/clock").iterdir()
    assert file.name == "000000000001"
    assert unsealed(file.read_bytes(), "") == {
        "format": 1, "lineage": "lineage", "batch": 1, "panes": 3, "finished": False, "drained": True,
        "state": {"watermark": 2, "now": 3, "batch": 4, "stages": [9],
                  "spoken": [["s", "0", 5, 6, 7, 8, [[[1, 2], [3, 4], False]]]]},
        "totals": {"read": 1, "added": 0, "dropped": 0, "filtered": 0, "quarantined": 0, "late": 0, "kept": 0,
                   "placed": 0, "missed": 0, "ended": 0, "given": 0, "deduplicated": 0},
        "bad": {"s": [1, 2]}, "given": {"x": 1}, "open_windows": 4, "partitions": [["s", "0", 5, 2, False, 7]],
        "offsets": "digest", "lag": [["s", "0", 1, 2]], "notes": ["a note"], "held": {"1: windows": 4},
    }  # fmt: skip
    assert read_clock(store, "lineage", 1).totals == clocks.totals


def test_the_lease_the_note_and_the_failure(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    held = take_lease(store)
    assert set(unsealed((tmp_path / "penstock/epochs/000000001").read_bytes(), "")) == {
        "format",
        "host",
        "pid",
        "started",
    }
    held.release()
    assert (tmp_path / "penstock/epochs/000000001.released").exists()
    note_waiting(store, 1, 2, "a sink")
    assert set(unsealed((tmp_path / "penstock/waiting").read_bytes(), "")) == {
        "format",
        "epoch",
        "batch",
        "what",
        "since",
    }
    say_failed(store, 1, ps.PlanError("a", "b", "c"))
    told = json.loads((tmp_path / "penstock/said/failed-000000001").read_bytes())
    assert told == {"epoch": 1, "what": "a", "why": "b", "instead": "c"}
    replay.put(store, [replay.Repaired(("s", "0", 7), {"x": 1})])
    assert unsealed((tmp_path / "penstock/repaired/000000000001").read_bytes(), "")["rows"] == [["s", "0", 7, {"x": 1}]]


def test_an_observation() -> None:
    line = Observation(1, 2, 3.0, 4.0, 5.0, 6, [7]).line()
    assert line == PINNED["observation"].encode()
    assert observation(line) == Observation(1, 2, 3.0, 4.0, 5.0, 6, [7])


def test_what_a_sample_tells() -> None:
    assert " ".join(Sample("s", ()).plain()) == "source dots keys looked skew behind"


# Spark's state, and what travels


class Handle:
    """Spark's handle as far as a shard asks it."""

    def getMapState(self, *asked: Any) -> Any:  # noqa: N802 - Spark's name
        self.asked = asked


def test_the_schema_of_the_state() -> None:
    handle = Handle()
    shard_processor.Shard.init(object.__new__(shard_processor.Shard), handle)
    name, key, value = handle.asked
    assert (name, key.simpleString(), value.simpleString()) == ("parts", "struct<part:string>", "struct<data:binary>")
    assert shard_processor._HEAD == "head"
    assert messages.PACKETS == "shard int, kind string, payload binary"
    assert messages.WORDS == "shard int, kind string, head string, payload binary"
    assert messages.shard_ids(4).ids == (12, 6, 2, 0)


def test_the_value_of_a_shard() -> None:
    value = written_kept(Kept(b"head", {"a": b"small"}, {"b": 2}, {"b": 9}))
    assert codec.unframed(value)[0] == {
        "format": 2,
        "head": 4,
        "pieces": {"b": 2},
        "sizes": {"b": 9},
        "small": {"a": 5},
    }


def test_what_streams_are_called() -> None:
    assert [messages.at(stage, kind) for stage in (0, 2) for kind in (messages.rows_of("x"), messages.late_of(1))] == [
        "rows:x", "late:1", "2/rows:x", "2/late:1"]  # fmt: skip
    assert [messages.late_of(0), messages.PANES, messages.BAD, messages.ARCHIVE] == [
        "late",
        "panes",
        "quarantine",
        "archive",
    ]
    assert [folder_of(one) for one in ("late", "2/late:1", "quarantine")] == ["late", "2-late-1", "quarantine"]


def test_the_clock_of_tasks() -> None:
    assert task_clock.NAME == "penstock.clock"
    assert keys_of(task_clock.TaskClock("l", 1, (), 2)) == "lineage batch watermarks before newest"


# Positions of sources


def test_positions(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}\n')
    reader = ps.directory(tmp_path, schema="x long", name="s").inputs[0].source.reader
    empty = {"newest": None, "looked": 0, "last": "", "older": "", "first": 0, "count": 0, "files": [],
             "partitions": [], "until": None, "left": None}  # fmt: skip
    assert reader.start() == empty
    assert reader.latest(empty, 0, None).keys() == empty.keys()
    scores = ps.game_scores(events=5, realtime=False).inputs[0].source.reader
    assert " ".join(scores.latest(scores.start(), 0, None)) == PINNED["positions"]["game scores"]
    whole = ps.table([{"x": 1}], schema="x long").changes.source.reader
    assert whole.start() == {"version": 0, "content": "", "mark": None, "looked": 0, "read": 0, "run": "", "failed": ""}
    assert Held(pa.table({"x": [1]})).latest({"row": 0}, 0, None) == {"row": 1}
    offset = checked({"batch": 0, "now": 0, "sources": {}})
    assert offset == {"batch": 0, "now": 0, "sources": {}, "check": PINNED["positions"]["check"]}


def test_positions_of_kafka() -> None:
    topics, logs = {"t": Topic("id", ("t/0", "t/1"))}, {"t/0": Log(0, 9, 9), "t/1": Log(2, 5, 7)}
    begun = offsets.begun(topics, logs, {"t/0": 0, "t/1": 2}, {"t/0": 9}, 11)
    assert begun == {
        "begun": True, "ids": {"t": "id"}, "partitions": {"t/0": [0, 9], "t/1": [2, 5]}, "stop": {"t/0": 9},
        "held": {"t/1": [5, 7, 11]}, "lost": {},
    }  # fmt: skip
    assert offsets.advanced(begun, topics, logs, {}, {"t/0": 9}, 12, 4) == {
        "begun": True, "ids": {"t": "id"}, "partitions": {"t/0": [3, 9], "t/1": [3, 5]}, "stop": {"t/0": 9},
        "held": {"t/1": [5, 7, 11]}, "lost": {},
    }  # fmt: skip
    assert offsets.UNBEGUN.keys() == begun.keys()


def test_readers_are_called_as_they_were() -> None:
    readers = {
        "directory": ps.directory("in", schema="x long"), "gamescores": ps.game_scores(),
        "kafka": ps.kafka("topic", servers="localhost:9092", schema="x long"),
    }  # fmt: skip
    assert {kind: one.inputs[0].source.reader.kind for kind, one in readers.items()} == {kind: kind for kind in readers}
    assert Held(pa.table({})).kind == "held"
    assert ps.table([{"x": 1}], schema="x long").changes.source.reader.kind == "table"


# Sinks and their ledgers


class Own:
    """A sink of a user, without a place."""

    ledgered = False
    place = None

    def refuse(self, target: Any) -> None:
        pass

    def describe(self) -> str:
        return "of a user"

    def open(self, target: Any) -> Any:
        raise AssertionError


def ignore(rows: Any, batch: Any) -> None:
    pass


def test_ids_of_sinks() -> None:
    early = clicks().dedup("user", within="1 s")
    panes = early.key_by("user").window(ps.tumbling("1 minute")).aggregate(n=ps.rows())
    joined = clicks().join(clicks(name="b"), on="user", between=("0", "1 s"), prefix="b_")
    pipeline = ps.pipeline(
        "p", panes.write(ps.sqlite("a.db", table="T")), panes.write(ps.duckdb("a.duckdb", table="t")),
        panes.write(ps.files("some/where")), panes.write(ps.memory("m")), panes.write(ps.console()),
        panes.write(ps.console(rows=2)), panes.write(ps.foreach_batch(ignore)), panes.write(Own()),
        panes.write(ps.postgres("postgresql://h/d", table="t")), panes.write(ps.to_kafka("t", servers="h:9092")),
        early.output("duplicates").write(ps.files("duplicates")), early.late.write(ps.files("late")),
        joined.late_of("right").write(ps.files("right")), panes.quarantine.write(ps.files("bad")),
        panes.archive.write(ps.files("all")),
    )  # fmt: skip
    assert [name for name, *_ in targets_of(pipeline)] == PINNED["sinks"]
    assert PINNED["sinks"][4:8] == [
        "p/1.panes/console",
        "p/1.panes/console/2",
        "p/1.panes/foreachbatch",
        "p/1.panes/own",
    ]


def test_ledgers_in_databases() -> None:
    assert sql.LEDGER == (
        'CREATE TABLE penstock_ledger (sink TEXT PRIMARY KEY, lineage TEXT NOT NULL, batch BIGINT NOT NULL, '
        'epoch BIGINT NOT NULL, "rows" BIGINT NOT NULL, fingerprint TEXT NOT NULL, table_name TEXT NOT NULL)'
    )  # fmt: skip
    assert sql.RETIRED == (
        "CREATE TABLE penstock_retired (table_name TEXT NOT NULL, lineage TEXT NOT NULL, "
        "PRIMARY KEY (table_name, lineage))"
    )
    assert Batch("lineage", 7, 1, 2, "x").token == "lineage/7"


def test_the_ledger_in_kafka() -> None:
    found = Found(Ledger("p/panes/kafka:t", "lineage", 1, 2, 3, "abc"), ("old",), (("user", "string"),))
    key, value, headers = found.record("t")
    assert (key, headers) == (b"t", [])
    assert value == (
        b'{"version": 1, "sink": "p/panes/kafka:t", "lineage": "lineage", "batch": 1, "epoch": 2, "rows": 3, '
        b'"fingerprint": "abc", "retired": ["old"], "columns": [["user", "string"]]}'
    )
    sink = ps.to_kafka("t", servers="h:9092")
    assert isinstance(sink, Kafka)
    assert (ledger._parsed(sink, value), PROGRESS) == (found, "penstock-progress")
    assert sink.transactional_id == "penstock-t"
    assert (records.TIMING, records.INDEX, records.BATCH) == (
        "penstock.timing", "penstock.index", "penstock.batch")  # fmt: skip


def test_groups_of_consumers() -> None:
    """Who may read a topic is often said of its groups, by their names."""
    assert {name for file in PENSTOCK.rglob("*.py")
            for name in re.findall(r'"group.id": (?:self.group or )?"(penstock[a-z-]*)"', file.read_text())} == {
        "penstock", "penstock-progress", "penstock-quarantine", "penstock-prove"}  # fmt: skip


def test_manifests_of_files() -> None:
    epoch = Epoch(1, "s", "l", 2, "json", "panes", "accumulating", ["k"], "", {"old": 3})
    assert keys_of(epoch) == "number sink lineage epoch format kind mode keys schema kept version"
    assert keys_of(Manifest("s", "l", 1, 2, 3, "f", [])) == "sink lineage batch epoch rows fingerprint files version"
    assert (manifest.EPOCHS, manifest.BEGUN) == ("_penstock/epochs", "data/_begun.json")


def test_fingerprints_of_rows() -> None:
    rows = pa.table({"k": ["a", "b"], "n": [1, None], "x": [0.5, float("nan")], "l": [[1], []]})
    assert shown(fingerprint(rows)) == PINNED["fingerprint"]


def test_columns_of_outputs() -> None:
    from penstock.plan.output_schemas import output_schema

    panes = clicks().key_by("user").window(ps.tumbling("1 minute")).aggregate(n=ps.rows())
    assert {kind: output_schema(panes.plan, kind).names for kind in ("panes", "late", "quarantine", "archive")} == {
        "panes": ["user", "window_start", "window_end", "n", "pane_index", "pane_timing", "pane_final", "op"],
        "late": ["ad", "user", "price", "at", "late_event_time", "late_watermark", "late_by", "late_partition",
                 "late_offset", "late_windows"],
        "quarantine": ["source", "partition", "offset", "step", "reason", "raw"],
        "archive": ["ad", "user", "price", "at", "archive_source", "archive_partition", "archive_offset",
                    "archive_batch"],
    }  # fmt: skip
    assert QUARANTINED == ("source", "partition", "offset", "step", "reason", "raw")


# What machines read


def keys_of(value: Any) -> str:
    return " ".join(field.name for field in fields(value))


FIELDS: dict[type, str] = {
    Counts: "read added dropped filtered quarantined late kept placed missed ended given deduplicated",
    Progress: (
        "batch now watermark events panes late quarantined seconds elapsed totals total_panes "
        "open_windows laggard shares lag waiting notes rows held"
    ),
    Standing: (
        "checkpoint name lineage shards batch now watermark totals panes finished open_windows partitions "
        "owner lag notes waiting held"
    ),
    Partition: "source partition newest watermark idle silent_for",
    Lag: "source partition current end",
    Owner: "epoch pid host released alive",
    Waits: "batch what since",
    Overview: (
        "batch now wall watermark behind laggard held_back events_per_second panes_per_second events "
        "panes filtered late quarantined duplicates late_share quarantined_share open_windows state_rows "
        "state_bytes checkpoint_bytes lag partitions idle_partitions last_batch_seconds batch_seconds "
        "waited_share shares"
    ),
    Concern: "level about what why instead",
    Situation: "at name alive stopped finished batch who waiting failure",
    Failure: "epoch what why instead",
    PartitionClock: "source partition newest watermark idle silent_for",
    Ledger: "sink lineage batch epoch rows fingerprint",
    Clocks: ("batch state totals bad panes finished drained given open_windows partitions offsets lag notes held"),
    Dot: "event_time now key text partition fate why offset",
    Mark: "now watermark",
    Shown: "key start end now index timing text final op",
    Driver: "kind batch now watermark own slowest",
    Saves: "lateness delay knob idle",
    Because: "kind rule part facts",
    Place: "window taken expires_at",
    EventWhy: "event fate batch now watermark key late_by reason places driver saves newest",
    Event: "partition offset event_time text op",
    Withdrawn: "window index text",
    PaneWhy: "batch now watermark next_watermark window index timing final text new records withdrawn because",
    WindowWhy: "key window complete_at expires_at panes late open_records unshown batches read",
    SampledEvent: "event key fate batch now watermark late_by reason windows partitions",
    SampledPane: "batch now watermark next_watermark index timing final op text",
    SampledWindow: "key window panes events late kept shown batches",
    Advice: (
        "name exact events span current follows lateness partitions rows recommended verdict goals "
        "batches before settling endless"
    ),
    Recommended: "delay share lateness tail whole complete after_end left unmet instead sooner",
    Bad: "source partition offset step reason raw",
    Difference: "key stream other",
    Comparison: "other answers different first seconds skipped",
    Verified: "rows columns seconds comparisons",
    Row: "kill life at batches restarts verdict",
}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: str(kind.__name__))
def test_fields_that_are_written_as_they_are_called(kind: type) -> None:
    """In JSON of checkpoints, of `--json` and of the dashboard."""
    assert keys_of(kind) == FIELDS[kind]


def test_the_environment() -> None:
    found = {name for file in PENSTOCK.rglob("*.py") for name in re.findall(r"PENSTOCK_[A-Z_]+", file.read_text())}
    assert found == {
        "PENSTOCK_CACHE_MB", "PENSTOCK_CLASS_ARCHIVE", "PENSTOCK_CLOCK_SHIFT", "PENSTOCK_DEBUG", "PENSTOCK_JARS",
        "PENSTOCK_KILL_AT", "PENSTOCK_KILL_GROUP", "PENSTOCK_LOG", "PENSTOCK_MASTER", "PENSTOCK_PYTHON",
        "PENSTOCK_UI_TOKEN",
    }  # fmt: skip


def test_metrics_and_concerns() -> None:
    assert [metric.name for metric in METRICS] == PINNED["metrics"]
    assert LEVELS == ("urgent", "warning", "note")
    assert " ".join(ABOUT) == (
        "run stall sink silence watermark lag quarantine kept late state hot_key log batches observing replay idle"
    )
