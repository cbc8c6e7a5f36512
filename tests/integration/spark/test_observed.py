"""What is observed of a run is what happened: the picture cannot lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.connectors.sink_errors import SinkDown
from penstock.errors import DataError
from penstock.observability.health.attention import attention
from penstock.observability.health.run_state import situation
from penstock.observability.journal import FOLDER, Recorded, latest_of_each, plane_of
from penstock.observability.observation import Observation
from penstock.observability.overview import overview
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED
from penstock.types.timestamps import from_datetime
from tests.integration.spark.driving import caught_up, put, scores, totals
from tests.unit.picture.reading import Picture

START = "2026-05-01T12:00:00"


def observed(checkpoint: Path) -> list[Observation]:
    return latest_of_each(Recorded.at(str(checkpoint)).news())


@pytest.fixture(scope="module")
def game(spark, tmp_path_factory) -> tuple[Path, list[dict[str, Any]], list[dict[str, Any]]]:
    """A game with stragglers, bad rows and a hot key; its panes and late rows as the sinks have them."""
    folder = tmp_path_factory.mktemp("game")
    made = ps.game_scores(rate=500, keys=30, teams=3, partitions=2, events=5_000, realtime=False, start=START,
                          faults=ps.Faults(stragglers=0.02, bad=0.01))  # fmt: skip
    timed = made.event_time("at", watermark=ps.bounded("1 second", idle=None))
    windows = timed.key_by("team").window(ps.tumbling("2 seconds")).trigger(ps.at_watermark(early=ps.count(1)))
    sums = windows.accumulating().aggregate(points=ps.sum("points"))
    pipeline = ps.pipeline("game", sums.write(ps.memory("panes")), sums.late.write(ps.memory("late")),
                           sums.quarantine.write(ps.memory("bad")), batch_rows=500)  # fmt: skip
    caught_up(pipeline, folder / "checkpoint")
    rows = {name: list(ps.memory(name).rows) for name in ("panes", "late", "bad")}
    return folder / "checkpoint", rows["panes"], rows["late"]


def test_every_batch_is_observed_with_its_clocks_and_counts(game):
    checkpoint, panes, late = game
    seen = observed(checkpoint)
    assert [one.batch for one in seen] == list(range(len(seen)))
    assert [one.watermark for one in seen] == sorted(one.watermark for one in seen)
    assert [one.watermarks[0] for one in seen[1:]] == [one.watermark for one in seen[:-1]]
    assert seen[-1].totals["read"] == 5_000 == sum(one.counts["read"] for one in seen)
    assert sum(one.rows.get("panes", 0) for one in seen) == len(panes)
    assert sum(one.rows.get("late", 0) for one in seen) == len(late) > 0
    assert {(one["source"], one["partition"]) for one in seen[-1].partitions} == {("scores", "0"), ("scores", "1")}
    assert all(one.sinks for one in seen if one.rows.get("panes"))


def test_sizes_and_positions_are_observed(game):
    checkpoint, panes, _ = game
    seen = observed(checkpoint)
    assert all(one.state["bytes"] >= one.state["largest"] > 0 for one in seen[1:])
    assert all(one.state["parts"] > 0 for one in seen[1:] if one.state["open"])
    assert 0 < seen[-1].checkpoint["bytes"] < 50 << 20
    assert seen[-1].checkpoint["files"] > 0
    (name,) = (name for name in seen[-1].ledgers if "/panes/" in name)
    assert seen[-1].ledgers[name]["batch"] == seen[-1].sinks[name]
    assert sum(one.ledgers[name]["rows"] for one in seen if one.sinks.get(name) == one.batch) == len(panes)
    assert seen[-1].sources["scores"]["read"] == 5_000
    assert seen[-1].sources["scores"]["bad"] == seen[-1].totals["quarantined"] > 0
    assert seen[-1].total_panes == len(panes)
    assert seen[-1].settings["sources"]["scores"]["rule"] == "newest event time less 1 second"
    assert (seen[-1].settings["shards"], seen[-1].settings["until"]) == (2, "caught_up")


def test_what_needs_attention_is_said_of_a_real_run(game):
    checkpoint, _, _ = game
    told = {one.about: one for one in attention(observed(checkpoint), situation(str(checkpoint)))}
    assert told["run"].what.startswith("the run was stopped after batch ")
    assert told["late"].what.endswith("% of the events of the last ten minutes were late")
    assert told["quarantine"].what.endswith("of the last ten minutes were quarantined")
    found = overview(observed(checkpoint))
    assert found is not None
    assert (found.events, found.late) == (5_000, len(game[2]))


def test_panes_on_the_plane_are_those_of_the_sink(game):
    checkpoint, panes, _ = game
    plane = plane_of(observed(checkpoint), "game")
    held = {(row["team"], from_datetime(row["window_start"]), row["pane_index"]): row for row in panes}
    assert plane.panes
    for one in plane.panes:
        row = held[one.key, one.start, one.index]
        assert (one.text, one.timing, one.final) == (str(row["points"]), row["pane_timing"], row["pane_final"])
        assert one.end == from_datetime(row["window_end"])


def test_events_on_the_plane_have_their_fate(game):
    checkpoint, panes, late = game
    dots = plane_of(observed(checkpoint), "game").dots
    assert {dot.fate for dot in dots} == {COUNTED, LATE, QUARANTINED}
    rows = {(row["late_partition"], row["late_offset"]): row for row in late}
    for dot in (dot for dot in dots if dot.fate == LATE):
        assert dot.event_time == from_datetime(rows[dot.partition, dot.offset]["late_event_time"])
        assert dot.why == "every window it belongs to had expired"
    assert all(dot.why and dot.event_time is None for dot in dots if dot.fate == QUARANTINED)
    teams = {row["team"] for row in panes}
    assert all(dot.key in teams for dot in dots if dot.fate == COUNTED)


def test_the_command_draws_the_run_of_a_checkpoint(game, tmp_path, capsys):
    checkpoint, _, _ = game
    assert main(["picture", str(checkpoint), "-o", str(tmp_path / "game.svg")]) == 0
    plane = plane_of(observed(checkpoint))
    assert f"{len(plane.dots):,} events, {len(plane.panes):,} panes" in capsys.readouterr().out
    drawn = Picture((tmp_path / "game.svg").read_text("utf-8"))
    assert len(drawn.dots()) > 100


def test_why_a_run_failed_and_that_it_waited_is_known_afterwards(spark, tmp_path):
    put(tmp_path / "in", "a.json", ("red", 1, 1), ("red", 1, 25))
    checkpoint = str(tmp_path / "checkpoint")
    seen = []

    def fails(rows: Any, batch: Any) -> None:
        found = situation(checkpoint)
        seen.append(None if found.waiting is None else found.waiting.what)
        if len(seen) < 3:
            raise SinkDown("the server sleeps", "it was told to", "wait")
        raise DataError("the sink has had enough", "of this test", "end it")

    pipeline = ps.pipeline("fails", totals(scores(tmp_path / "in")).write(ps.foreach_batch(fails)))
    with pytest.raises(DataError):
        pipeline.run(checkpoint=checkpoint, until="caught_up")
    assert seen == [None, "the server sleeps", "the server sleeps"]
    one = attention(observed(Path(checkpoint)), situation(checkpoint))[0]
    assert one.level == "urgent"
    assert one.what.startswith("the run failed after batch 0, ")
    assert one.what.endswith(" ago: the sink has had enough")
    assert (one.why, one.instead) == ("of this test", "end it")


def test_nothing_is_kept_where_nobody_asks(spark, tmp_path, capsys):
    put(tmp_path / "in", "a.json", ("red", 1, 1))
    pipeline = ps.pipeline("quiet", totals(scores(tmp_path / "in")).write(ps.memory("panes")))
    pipeline.run(checkpoint=str(tmp_path / "checkpoint"), until="caught_up", observe=False)
    assert not (tmp_path / "checkpoint" / FOLDER).exists()
    assert main(["picture", str(tmp_path / "checkpoint")]) == 1
    assert "was observed" in capsys.readouterr().err
