"""What may change between two runs of one checkpoint? Each row of the table in docs/running.md."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.checkpoint.identity import identity_of
from penstock.checkpoint.unwritten_rows import kept_rows
from penstock.connectors.sink_errors import ForeignLineage
from penstock.plan.graph import flow_of
from penstock.storage.local import CheckpointError, LocalStore
from tests.integration.spark.driving import ROWS, Unspoken, caught_up, clock, put, put_text, scores

SOURCE = ps.events(f"{ROWS}, n int", name="scores")
ASCENDING, TUMBLING = ps.ascending(), ps.tumbling("10 seconds")
EARLY_AND_LATE = ps.at_watermark(early=ps.count(10), late=ps.count(1))


@dataclass(frozen=True)
class Made:
    """A pipeline in parts, so that a test may change one of them."""

    name: str = "scores"
    source: Any = SOURCE
    watermark: Any = ASCENDING
    keys: tuple[str, ...] = ("team",)
    window: Any = TUMBLING
    lateness: str = "1 minute"
    trigger: Any = EARLY_AND_LATE
    mode: str = "accumulating"
    aggregates: tuple[tuple[str, Any], ...] = (("points", ps.sum("points")), ("plays", ps.rows()))
    shards: int | None = None

    def results(self) -> ps.Panes:
        """The panes."""
        timed = self.source.event_time("at", watermark=self.watermark).key_by(*self.keys)
        fired = timed.window(self.window, lateness=self.lateness).trigger(self.trigger)
        return getattr(fired, self.mode)().aggregate(**dict(self.aggregates))

    def pipeline(self) -> ps.Pipeline:
        """The pipeline, with an output nobody reads."""
        return ps.pipeline(self.name, self.results().write(ps.memory("panes")), shards=self.shards)


REFUSED = {
    "pipeline name": ({"name": "others"}, "belongs to the pipeline 'scores'"),
    "source name": ({"source": ps.events(f"{ROWS}, n int", name="goals")}, r"sources: it has 'scores \(handed in\)'"),
    "source kind": ({"source": ps.directory("in", schema=f"{ROWS}, n int", name="scores")}, r"'scores \(directory\)'"),
    "key added": ({"keys": ("team", "n")}, "keys: it has 'team string', the plan has 'team string, n int'"),
    "key removed": ({"keys": ()}, "keys: it has 'team string', the plan has 'none'"),
    "key type": ({"keys": ("n",), "source": SOURCE}, "the plan has 'n int'"),
    "window size": ({"window": ps.tumbling("20 seconds")}, "window: it has"),
    "window kind": ({"window": ps.session("10 seconds")}, "window: it has"),
    "longer lateness": ({"lateness": "1 hour"}, "lateness: it has '1 minute', the plan has '1 hour'"),
    "shorter lateness": ({"lateness": "1 second"}, "lateness: it has '1 minute', the plan has '1 second'"),
    "no lateness": ({"lateness": "0", "trigger": ps.at_watermark()}, "memory: it has 'windows, format"),
    "trigger shape": ({"trigger": ps.at_watermark(early=ps.every("1 second"), late=ps.count(1))}, "trigger: it has"),
    "early part taken away": ({"trigger": ps.at_watermark(late=ps.count(1))}, "trigger: it has"),
    "discarding": ({"mode": "discarding"}, "mode: it has 'accumulating', the plan has 'discarding'"),
    "retracting": ({"mode": "retracting"}, "mode: it has 'accumulating', the plan has 'retracting'"),
    "aggregate added": ({"aggregates": (*Made.aggregates, ("most", ps.max("points")))}, "aggregates: it has"),
    "aggregate removed": ({"aggregates": Made.aggregates[:1]}, "aggregates: it has"),
    "aggregate renamed": ({"aggregates": (("score", ps.sum("points")), Made.aggregates[1])}, "score = sum"),
    "aggregates reordered": ({"aggregates": Made.aggregates[::-1]}, "aggregates: it has"),
    "aggregated column": ({"aggregates": (("points", ps.sum("n")), Made.aggregates[1])}, r"points = sum\(n int\)"),
    "aggregated type": ({"source": ps.events("team string, points double, at timestamp", name="scores")},
                        r"points = sum\(points double\)"),
    "shards": ({"shards": 5}, "shards: it has '2, hash murmur64a/1', the plan has '5, hash murmur64a/1'"),
}  # fmt: skip


@pytest.mark.parametrize("change", REFUSED)
def test_refused(tmp_path, change):
    """By reading files alone: no session is asked for anything, and nothing is written."""
    changed, words = REFUSED[change]
    identity_of(LocalStore(str(tmp_path)), "scores", flow_of((Made().results().plan,)), None, 2)
    before = sorted(tmp_path.rglob("*"))
    # A source that is handed in is not run: it gets a reader of that name.
    pipeline = read(replace(Made(), **changed).pipeline())
    with pytest.raises(CheckpointError, match=words) as raised:
        pipeline.run(checkpoint=str(tmp_path), spark=Unspoken())
    assert "why:" in str(raised.value)
    assert "instead:" in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_refused_memory_of_another_format(tmp_path):
    store = LocalStore(str(tmp_path))
    made = identity_of(LocalStore(str(tmp_path / "other")), "scores", flow_of((Made().results().plan,)), None, 2)
    held = {"name": "scores", "lineage": "x", "shards": 2, "binding": {**made.binding, "memory": "windows, format 1"}}
    store.create("penstock/identity", sealed(held))
    with pytest.raises(CheckpointError, match="memory: it has 'windows, format 1'"):
        read(Made().pipeline()).run(checkpoint=str(tmp_path), spark=Unspoken())


def read(pipeline: ps.Pipeline) -> ps.Pipeline:
    """The pipeline with a reader whose kind is that of no reader at all, where it has none."""
    (output,) = pipeline.outputs
    (one,) = output.plan.inputs
    if one.source.reader is not None:
        return pipeline
    source = replace(one.source, reader=Nobody())
    return replace(
        pipeline, outputs=(replace(output, plan=replace(output.plan, inputs=(replace(one, source=source),))),)
    )


@dataclass(frozen=True)
class Nobody:
    """A reader that nobody asks."""

    kind: str = "handed in"


# What is allowed. One run is made, and copied for each test.


def outputs(folder: Path, results: ps.Panes) -> list[Any]:
    """Panes and late rows in one database."""
    return [
        results.write(ps.sqlite(folder / "a.db", table="totals", history=True)),
        results.late.write(ps.sqlite(folder / "a.db", table="late")),
    ]


@pytest.fixture(scope="module")
def stopped(spark, tmp_path_factory) -> Path:
    """A run that has read three rows: one window is complete, one is open."""
    folder = tmp_path_factory.mktemp("stopped")
    put(folder / "in", "a.json", ("red", 1, 1), ("red", 2, 12), ("blue", 3, 13))
    results = Made(source=scores(folder / "in")).results()
    caught_up(ps.pipeline("scores", *outputs(folder, results), shards=2), folder / "checkpoint")
    return folder


@pytest.fixture
def held(stopped, tmp_path) -> Path:
    """A copy of that run: checkpoint, rows and database lie elsewhere now."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(stopped, folder)
    return folder


def history(folder: Path, table: str = "totals_history") -> list[tuple[Any, ...]]:
    """Every pane of a run."""
    with closing(sqlite3.connect(folder / "a.db")) as connection:
        select = f"SELECT substr(window_start, 18, 2), team, points, pane_timing, pane_index FROM {table}"
        return sorted(connection.execute(select).fetchall())


BEFORE = [("00", "red", 1, "on_time", 0)]


def test_a_directory_a_database_and_a_checkpoint_that_were_moved(held):
    """The same rows are not read again, and the ledger has moved with its table."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 25))
    results = Made(source=scores(held / "in")).results()
    caught_up(ps.pipeline("scores", *outputs(held, results)), held / "checkpoint")
    assert history(held) == [*BEFORE, ("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]


def test_a_checkpoint_that_was_moved_goes_on_where_a_link_is_left_in_its_place(stopped, held):
    """Spark keeps the place of the checkpoint in its own files, and looks there."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 25))
    pipeline = ps.pipeline("scores", *outputs(held, Made(source=scores(held / "in")).results()))
    old, aside = stopped / "checkpoint", stopped / "aside"
    old.rename(aside)
    old.symlink_to(held / "checkpoint")
    try:
        caught_up(pipeline, held / "checkpoint")
    finally:
        old.unlink()
        aside.rename(old)
    assert history(held) == [*BEFORE, ("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]


def test_the_pace_may_change(held):
    """batch_every, batch_rows, delivery, staging, max_bad; without shards= those of the checkpoint hold."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 25))
    put_text(held / "in", "c.json", "no JSON\n")
    results = Made(source=scores(held / "in", max_bad=1)).results()
    pipeline = ps.pipeline("scores", *outputs(held, results), delivery="at_least_once", batch_rows=1,
                           staging=(held / "aside").as_uri())  # fmt: skip
    told = caught_up(pipeline, held / "checkpoint", batch_every="50 milliseconds")
    assert [one.events for one in told if one.events] == [2, 1]
    assert history(held) == [*BEFORE, ("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]


def test_the_watermark_rule_may_change(held):
    """A longer delay: W stands where it was until the new rule has caught up; nothing that was in time is late."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 33))
    rule = ps.bounded("20 seconds", idle="1 hour", when_idle="advance", max_skew=None)
    results = Made(source=scores(held / "in"), watermark=rule).results()
    told = caught_up(ps.pipeline("scores", *outputs(held, results)), held / "checkpoint")
    assert len({one.watermark for one in told}) == 1
    assert history(held) == BEFORE
    put(held / "in", "c.json", ("red", 40, 40))
    caught_up(ps.pipeline("scores", *outputs(held, results)), held / "checkpoint")
    assert history(held) == [*BEFORE, ("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]


def test_the_numbers_of_a_trigger_may_change(held):
    """A window in which so many records wait already fires with its next one."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 0, 13.5))
    trigger = ps.at_watermark(early=ps.count(2), late=ps.count(5))
    results = Made(source=scores(held / "in"), trigger=trigger).results()
    caught_up(ps.pipeline("scores", *outputs(held, results)), held / "checkpoint")
    assert history(held) == [*BEFORE, ("10", "red", 12, "early", 0)]


def test_row_functions_and_a_column_more(held):
    """From the next row on; the late rows then have a column more, for which their table must be a new one."""
    line = f'{{"team": "red", "points": 10, "at": "{clock(14)}", "bonus": 5}}\n'
    last = f'{{"team": "red", "points": 1, "at": "{clock(25)}", "bonus": 0}}\n'
    put_text(held / "in", "b.json", line + last)
    source = scores(held / "in", schema=f"{ROWS}, bonus long").with_columns(points="points + bonus").where("points > 1")
    results = Made(source=source).results()
    pipeline = ps.pipeline("scores", results.write(ps.sqlite(held / "a.db", table="totals", history=True)))
    caught_up(pipeline, held / "checkpoint")
    # The where came before event time: the row at 25 is no event, and W is 14.
    assert history(held) == BEFORE
    put_text(held / "in", "c.json", last.replace('"points": 1', '"points": 2'))
    caught_up(pipeline, held / "checkpoint")
    assert history(held) == [*BEFORE, ("10", "blue", 3, "on_time", 0), ("10", "red", 17, "on_time", 0)]


def test_outputs_reordered_and_one_added_in_front(held):
    """An output is known by what it is and where it goes; a new one is given what is shown from then on."""
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 25))
    results = Made(source=scores(held / "in")).results()
    first = results.write(ps.sqlite(held / "b.db", table="others"))
    caught_up(ps.pipeline("scores", first, *outputs(held, results)[::-1]), held / "checkpoint")
    after = [("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]
    assert history(held) == [*BEFORE, *after]
    shutil.copy(held / "b.db", held / "a.db")
    assert history(held, "others") == after


def test_an_output_removed(held):
    """Late rows that nobody writes any more are kept."""
    put(held / "in", "b.json", ("red", 20, 95), ("red", 7, 2))
    put(held / "in", "c.json", ("red", 8, 2))
    results = Made(source=scores(held / "in")).results()
    pipeline = ps.pipeline("scores", outputs(held, results)[0], batch_rows=1)
    told = caught_up(pipeline, held / "checkpoint")
    assert told[-1].totals.late == 1
    (kept,) = kept_rows(LocalStore(str(held / "checkpoint")), "late")
    assert kept.column("points").to_pylist() == [8]


def test_an_output_that_moves(held):
    """It would begin in the middle: refused, unless that is said to be meant."""
    results = Made(source=scores(held / "in")).results()
    before = history(held)

    def moved(**how: Any) -> ps.Pipeline:
        return ps.pipeline("scores", results.write(ps.sqlite(held / "a.db", table="renamed", **how)))

    with pytest.raises(ForeignLineage, match="scores/panes/sqlite:totals is gone") as raised:
        moved().run(checkpoint=str(held / "checkpoint"), spark=Unspoken())
    assert "takeover=True" in str(raised.value)
    put(held / "in", "b.json", ("red", 10, 14), ("red", 20, 25))
    caught_up(moved(takeover=True), held / "checkpoint")
    assert history(held) == before
    assert history(held, "renamed") == [("10", "blue", 3, "on_time", 0), ("10", "red", 12, "on_time", 0)]


# Stages that keep the same things.


def temperatures(folder: Path, *names: str, **how: Any) -> ps.Pipeline:
    """Points above a hundred and all others, each with windows of its own, written in this order."""
    timed = scores(folder / "in").event_time("at", watermark=ps.ascending(idle=None))
    parts = {"hot": timed.where("points >= 100"), "cold": timed.where("points < 100")}
    panes = {name: rows.key_by("team").window(TUMBLING).aggregate(points=ps.sum("points"))
             for name, rows in parts.items()}  # fmt: skip
    return ps.pipeline("scores", *(panes[name].write(ps.sqlite(folder / "t.db", table=name, **how)) for name in names))


def forgotten(checkpoint: Path, *names: str) -> None:
    """The identity as older versions have written it, without what is called so."""
    path = checkpoint / "penstock/identity"
    known = unsealed(path.read_bytes(), str(path))
    bound = {name: value for name, value in known["binding"].items() if name.rpartition(": ")[2] not in names}
    path.unlink()
    LocalStore(str(checkpoint)).create("penstock/identity", sealed({**known, "binding": bound}))


def first_windows(folder: Path) -> dict[str, int]:
    """The points of the first window of each table."""
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        select = "SELECT points FROM {} WHERE substr(window_start, 18, 2) = '00'"
        return {name: connection.execute(select.format(name)).fetchone()[0] for name in ("hot", "cold")}


def test_stages_that_change_places_are_refused_and_a_takeover_does_not_help(spark, tmp_path):
    """By what the checkpoint has written; where an older one has not, by the ledgers; with rows, by what was given."""
    checkpoint = tmp_path / "checkpoint"
    put(tmp_path / "in", "a.json", ("red", 1000, 1), ("red", 1, 2))
    caught_up(temperatures(tmp_path, "hot", "cold"), checkpoint)
    for how in ({}, {"takeover": True}):
        with pytest.raises(CheckpointError, match="stage 1, windows, does what stage 2 of the checkpoint") as raised:
            temperatures(tmp_path, "cold", "hot", **how).run(checkpoint=str(checkpoint), spark=Unspoken())
        assert "write the outputs, and the sides of joins, in the order" in str(raised.value)
    forgotten(checkpoint, "does", "inputs")
    with pytest.raises(ForeignLineage, match=r"has the rows of scores/1\.panes/sqlite:cold of this checkpoint"):
        caught_up(temperatures(tmp_path, "cold", "hot", takeover=True), checkpoint)
    put(tmp_path / "in", "b.json", ("red", 200, 3), ("red", 2, 4), ("red", 100, 20), ("red", 1, 21))
    caught_up(temperatures(tmp_path, "hot", "cold"), checkpoint)
    assert first_windows(tmp_path) == {"hot": 1200, "cold": 3}
    with pytest.raises(ForeignLineage, match="of this checkpoint") as moved:
        temperatures(tmp_path, "cold", "hot", takeover=True).run(checkpoint=str(checkpoint), spark=Unspoken())
    assert "takeover=True does not help" in str(moved.value)


class Two(ps.KeyedFunction):
    """Remembers two numbers."""

    output = "x long, y long"
    x = ps.value("long", default=0)
    y = ps.value("long", default=0)

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.x, self.y = self.x + 1, self.y + event["points"]
        context.emit({"x": self.x, "y": self.y})


class Renamed(ps.KeyedFunction):
    """The same, of which one is called otherwise: in order of the names they have changed places."""

    output = "z long, y long"
    z = ps.value("long", default=0)
    y = ps.value("long", default=0)

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.z, self.y = self.z + 1, self.y + event["points"]
        context.emit({"z": self.z, "y": self.y})


def test_state_that_is_called_otherwise_is_refused_and_the_old_one_goes_on(spark, tmp_path):
    put(tmp_path / "in", "a.json", ("red", 10, 1))
    timed = scores(tmp_path / "in").event_time("at", watermark=ASCENDING).key_by("team")
    seen = ps.memory("two numbers")
    before = ps.pipeline("scores", timed.process(Two()).write(seen))
    caught_up(before, tmp_path / "checkpoint")
    others = {
        "state z: it has none, the plan has 'long'; state x: it has 'long'": timed.process(Renamed()),
        "stages: it has '1 process', the plan has '1 dedup'": timed.dedup("team", within="1 hour"),
        "the plan has '1 dedup, 2 process'": timed.dedup("team", within="1 hour").key_by("team").process(Two()),
    }
    for words, rows in others.items():
        with pytest.raises(CheckpointError, match=words):
            ps.pipeline("scores", rows.write(ps.memory("others"))).run(
                checkpoint=str(tmp_path / "checkpoint"), spark=Unspoken()
            )
    put(tmp_path / "in", "b.json", ("red", 5, 2))
    forgotten(tmp_path / "checkpoint", "does", "inputs", "timers")
    caught_up(before, tmp_path / "checkpoint")
    assert [(row["x"], row["y"]) for row in seen.rows] == [(1, 10), (2, 15)]
