"""Tables and rules that every shard has, on Spark: as the reference has it, through reloads, restarts and replays."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, strategies as st

import penstock as ps
from penstock.checkpoint.status import standing
from penstock.storage.local import CheckpointError, LocalStore
from penstock.testing import Script
from tests.integration.spark.driving import caught_up, clock, put_text, running
from tests.properties.profile import law
from tests.properties.test_everywhere_agree import STAGES, two_sources
from tests.properties.test_stages_agree import same_stages

COLUMNS = "team string, name string"


@law(4)
@given(st.data(), st.sampled_from(list(STAGES)))
def test_spark_agrees_with_the_reference(data: st.DataObject, name: str) -> None:
    flow = STAGES[name]()
    reference, spark = Script(flow, "reference"), Script(flow, "spark")
    for rows, now, restart in data.draw(two_sources()):
        note(f"{rows} at {now}")
        if restart:
            spark.restart()
        same_stages(reference.batch(rows, now=now), spark.batch(rows, now=now))
        assert reference.W == spark.W
        assert reference.counts == spark.counts
        assert reference.run.open_windows() == spark.run.open_windows()
    for _ in reference.flow.stages:
        same_stages(*(script.batch((), watermark="+inf") for script in (reference, spark)))


class Limits(ps.KeyedFunction):
    """Scores above a limit, with the rule that says so and the batch it came with."""

    output = "team string, points long, rule string, since long"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        for name, rule in context.rules.items():
            if event["points"] > rule["most"]:
                context.emit(team=key, points=event["points"], rule=name, since=context.rules.batch(name))


def scores(folder: Path) -> ps.Stream:
    folder.mkdir(parents=True, exist_ok=True)
    read = ps.directory(folder, schema="team string, points long, at timestamp", format="json", name="scores")
    return read.event_time("at", watermark=ps.ascending(idle=None))


def put_scores(folder: Path, name: str, *rows: tuple[str, int]) -> None:
    put_text(folder, f"{name}.json", "".join(
        json.dumps({"team": team, "points": points, "at": clock(1)}) + "\n" for team, points in rows))  # fmt: skip


def put_table(file: Path, *rows: tuple[str, str]) -> None:
    put_text(file.parent, file.name, "\n".join(["team,name", *(",".join(row) for row in rows)]) + "\n")


def named(tmp_path: Path, *, sink: Any = None, reload: str | None = "0", broadcast: bool = True) -> ps.Pipeline:
    """Scores with the names of their teams, from a file."""
    table = ps.table(tmp_path / "teams.csv", schema=COLUMNS, reload=reload)
    joined = scores(tmp_path / "in").join_table(table, on="team", how="left", broadcast=broadcast)
    return ps.pipeline("named", joined.write(sink or ps.memory("named")), shards=3)


def found(name: str = "named") -> list[tuple[Any, ...]]:
    return sorted((row["team"], row["points"], row["name"]) for row in ps.memory(name).rows)


@pytest.mark.parametrize("broadcast", [True, False])
def test_a_file_is_read_again_and_what_it_has_no_more_is_gone(spark: Any, tmp_path: Path, broadcast: bool) -> None:
    put_table(tmp_path / "teams.csv", ("a", "Ants"), ("b", "Bees"))
    put_scores(tmp_path / "in", "1", ("a", 1), ("b", 1), ("c", 1))
    with running(named(tmp_path, broadcast=broadcast), tmp_path / "checkpoint", spark=spark) as run:
        run.wait(lambda: found() if len(found()) == 3 else None)
        put_table(tmp_path / "teams.csv", ("a", "Apes"), ("c", "Cats"))
        run.batches(2)
        put_scores(tmp_path / "in", "2", ("a", 2), ("b", 2), ("c", 2))
        run.wait(lambda: found() if len(found()) == 6 else None)
        os.remove(tmp_path / "teams.csv")
        noted = run.until(lambda one: bool(one.notes))
        assert "the table 'teams' could not be read again" in noted.notes[0]
        put_scores(tmp_path / "in", "3", ("a", 3))
        run.wait(lambda: found() if len(found()) == 7 else None)
        assert run.told[-1].open_windows == 2
        assert run.told[-1].held == {"1: table join": 2}
        assert standing(LocalStore(str(tmp_path / "checkpoint"))).held == {"1: table join": 2}
    assert found() == [("a", 1, "Ants"), ("a", 2, "Apes"), ("a", 3, "Apes"), ("b", 1, "Bees"), ("b", 2, None),
                       ("c", 1, None), ("c", 2, "Cats")]  # fmt: skip


def test_a_run_that_goes_on_reads_it_anew_and_without_it_keeps_what_it_had(spark: Any, tmp_path: Path) -> None:
    put_table(tmp_path / "teams.csv", ("a", "Ants"))
    put_scores(tmp_path / "in", "1", ("a", 1))
    caught_up(named(tmp_path, reload=None), tmp_path / "checkpoint", spark=spark)
    put_table(tmp_path / "teams.csv", ("a", "Apes"))
    put_scores(tmp_path / "in", "2", ("a", 2))
    caught_up(named(tmp_path, reload=None), tmp_path / "checkpoint", spark=spark)
    os.remove(tmp_path / "teams.csv")
    put_scores(tmp_path / "in", "3", ("a", 3))
    told = caught_up(named(tmp_path, reload=None), tmp_path / "checkpoint", spark=spark)
    assert "could not be read again" in told[-1].notes[0]
    assert found() == [("a", 1, "Ants"), ("a", 2, "Apes"), ("a", 3, "Apes")]


def test_a_batch_that_is_run_again_meets_the_table_it_met(spark: Any, tmp_path: Path) -> None:
    """The sink fails; until the batch is run again the file has become another."""
    seen: list[tuple[str, str]] = []

    def failing(rows: Any, batch: Any) -> None:
        put_table(tmp_path / "teams.csv", ("a", "Apes"))
        raise RuntimeError("down")

    def writing(rows: Any, batch: Any) -> None:
        seen.extend((row["team"], row["name"]) for row in rows.collect())

    put_table(tmp_path / "teams.csv", ("a", "Ants"))
    put_scores(tmp_path / "in", "1", ("a", 1))
    with pytest.raises(Exception, match="down"):
        caught_up(named(tmp_path, sink=ps.foreach_batch(failing)), tmp_path / "checkpoint", spark=spark)
    caught_up(named(tmp_path, sink=ps.foreach_batch(writing)), tmp_path / "checkpoint", spark=spark)
    assert seen == [("a", "Ants")]
    put_scores(tmp_path / "in", "2", ("a", 2))
    caught_up(named(tmp_path, sink=ps.foreach_batch(writing)), tmp_path / "checkpoint", spark=spark)
    assert seen == [("a", "Ants"), ("a", "Apes")]


def test_a_table_that_cannot_be_read_at_first_stops_the_run(spark: Any, tmp_path: Path) -> None:
    put_scores(tmp_path / "in", "1", ("a", 1))
    with pytest.raises(ps.DataError) as error:
        caught_up(named(tmp_path), tmp_path / "checkpoint", spark=spark)
    assert "the table 'teams' cannot be read" in error.value.what


def test_a_checkpoint_by_key_does_not_become_one_on_every_shard(spark: Any, tmp_path: Path) -> None:
    put_table(tmp_path / "teams.csv", ("a", "Ants"))
    put_scores(tmp_path / "in", "1", ("a", 1))
    caught_up(named(tmp_path, broadcast=False), tmp_path / "checkpoint", spark=spark)
    with pytest.raises(CheckpointError, match="on every shard"):
        caught_up(named(tmp_path), tmp_path / "checkpoint", spark=spark)


def test_a_batch_meets_a_table_too(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1, "2026-01-01T00:00:00"), ("b", 2, "2026-01-01T00:00:01")],
                                  "team string, points long, at string")  # fmt: skip
    teams = spark.createDataFrame([("a", "Ants"), ("z", "Zebras")], COLUMNS)
    events = ps.stream(frame).event_time("at", watermark=ps.ascending())
    joined = events.join_table(ps.table(teams), on="team", how="left", broadcast=True)
    ended = ps.pipeline("batch", joined.write(ps.memory("named")), shards=3).run(
        checkpoint=str(tmp_path / "checkpoint"), spark=spark
    )
    assert ended.reason == "ended"
    assert found() == [("a", 1, "Ants"), ("b", 2, None)]
    assert ended.progress.totals.conserved(0)
    assert ended.progress.totals.read == 4


def test_rules_change_while_it_runs_and_hold_on_every_shard(spark: Any, tmp_path: Path) -> None:
    rules = ps.directory(tmp_path / "rules", schema="id string, most long, gone boolean", format="json", name="rules")
    (tmp_path / "rules").mkdir()
    ruled = scores(tmp_path / "in").key_by("team").process(Limits(), rules=rules, rule_key="id", deleted="gone")
    pipeline = ps.pipeline("ruled", ruled.write(ps.memory("ruled")), shards=3)
    teams = [f"t{n}" for n in range(12)]

    def said(name: str, **rule: Any) -> None:
        put_text(tmp_path / "rules", f"{name}.json", json.dumps(rule) + "\n")

    def alerts() -> list[dict[str, Any]]:
        return ps.memory("ruled").rows

    said("1", id="low", most=10)
    with running(pipeline, tmp_path / "checkpoint", spark=spark) as run:
        run.batches(2)
        put_scores(tmp_path / "in", "1", *((team, 11) for team in teams))
        run.wait(lambda: alerts() if len(alerts()) == len(teams) else None)
        said("2", id="low", gone=True)
        said("3", id="high", most=100)
        run.batches(2)
    with running(pipeline, tmp_path / "checkpoint", spark=spark) as run:
        put_scores(tmp_path / "in", "2", *((team, 101) for team in teams))
        run.wait(lambda: alerts() if len(alerts()) == 2 * len(teams) else None)
        assert run.batches(1).open_windows == 1
    assert sorted({(row["points"], row["rule"]) for row in alerts()}) == [(11, "low"), (101, "high")]
    assert len({(row["rule"], row["since"]) for row in alerts()}) == 2
