"""What is said to machines is read by Prometheus' own parser, documented name by name, and bounded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from penstock.checkpoint.status import Waits
from penstock.observability.health.concern import ABOUT
from penstock.observability.health.run_state import Situation
from penstock.observability.health.watcher import look
from penstock.observability.observation import Observation
from penstock.observability.overview import overview
from penstock.observability.prometheus import COUNTER, METRICS, PARTITIONS, exposition
from penstock.types.timestamps import MIN_TIME
from tests.unit.observability.test_attention import CALM, MINUTE, NOON, RUNNING, SECOND, partition, run_of

DOCS = Path(__file__).parents[3] / "docs"
RICH = {
    "watermark": NOON - MINUTE, "total_panes": 77, "waited": 1.0, "missed": 2, "replayed": True,
    "totals": {"read": 10_000, "late": 3, "quarantined": 4, "filtered": 5, "dropped": 1, "deduplicated": 7},
    "held": {"1: join": 6, "2: windows": 4},
    "state": {"open": 10, "bytes": 4_096, "largest": 1_024}, "checkpoint": {"bytes": 9_000, "files": 12},
    "partitions": [partition("0", MINUTE, lag=5, to_log=2 * SECOND, from_log=SECOND), partition("1", lag=7)],
    "sinks": {"scores/panes": 19, "kept/late": 2_048}, "ledgers": {"scores/panes": {"batch": 19, "had": False}},
    "sources": {"scores": {"read": 10_000, "bad": 4, "max_bad_rows": None, "max_bad_share": None}},
    "hot": [["red", 0.5, 0.02], ["blue", 0.2, 0.15]],
}  # fmt: skip


def parsed(observed: list[Observation], now: Situation = RUNNING) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by name and labels, but for the pipeline's, as Prometheus' parser has them."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(exposition(look(observed, now))):
        assert family.documentation
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("pipeline") == "scores"
            held = found.setdefault(sample.name, {})
            assert tuple(labels.values()) not in held
            held[tuple(labels.values())] = sample.value
    return found


def test_every_number_is_that_of_the_overview():
    observed = run_of(**RICH)
    found, one = parsed(observed), overview(observed)
    assert one is not None
    assert found["penstock_events_total"] == {(): 10_000}
    assert found["penstock_panes_total"] == {(): 77}
    assert found["penstock_filtered_events_total"] == {(): 6}
    assert found["penstock_batches_total"] == {(): 20}
    assert found["penstock_events_per_second"][()] == one.events_per_second == 500
    assert found["penstock_watermark_timestamp_seconds"] == {(): (NOON - MINUTE) / 1e6}
    assert found["penstock_watermark_behind_seconds"] == {(): 60}
    assert found["penstock_watermark_held_back_seconds"] == {("scores/0",): 60}
    assert found["penstock_lag_events"] == {(): 12}
    assert found["penstock_partition_lag_events"] == {("scores", "0"): 5, ("scores", "1"): 7}
    assert found["penstock_partition_to_log_seconds"] == {("scores", "0"): 2}
    assert found["penstock_state_bytes"] == {(): 4_096}
    assert found["penstock_stage_rows"] == {("1: join",): 6, ("2: windows",): 4}
    assert found["penstock_open_windows"] == {(): 4}
    assert found["penstock_checkpoint_bytes"] == {(): 9_000}
    assert found["penstock_sink_given_batch"] == found["penstock_sink_ledger_batch"] == {("scores/panes",): 19}
    assert found["penstock_kept_bytes"] == {("late",): 2_048}
    assert found["penstock_unobserved_batches"] == {(): 2}
    assert sum(found["penstock_time_ratio"].values()) == sum(one.shares.values())


def test_rows_16_and_17_have_a_metric_and_an_alarm():
    keys = [["red", 0.82, 0.02], *[[f"key {number}", 0.01, 0.0] for number in range(19)]]
    found = parsed(run_of(hot=keys, state={"open": 10, "bytes": 2 << 30, "largest": 64 << 20}))
    assert found["penstock_hot_key_ratio"] == {("red",): 0.82 - 0.02}
    assert found["penstock_hottest_key_ratio"] == {(): 0.82 - 0.02}
    assert found["penstock_concern"] == {("hot_key", "warning"): 1, ("state", "warning"): 2}
    assert found["penstock_concerns"] == {("urgent",): 0, ("warning",): 3, ("note",): 0}


def test_whether_it_runs_is_told_and_what_is_unknown_is_left_out():
    assert parsed(run_of())["penstock_running"] == {(): 1}
    assert parsed(run_of(), replace(RUNNING, alive=False))["penstock_running"] == {(): 0}
    assert "penstock_running" not in parsed(run_of(), replace(RUNNING, alive=None))
    waiting = replace(RUNNING, waiting=Waits(20, "it sleeps", 1_000_000_000))
    assert parsed(run_of(), waiting)["penstock_sink_waiting"] == {(): 1}
    infinite = parsed(run_of(watermark=MIN_TIME))
    assert not {"penstock_watermark_timestamp_seconds", "penstock_watermark_behind_seconds"} & set(infinite)
    assert "penstock_lag_events" not in infinite
    assert parsed([])["penstock_concerns"] == {("urgent",): 0, ("warning",): 0, ("note",): 0}


def test_keys_and_names_of_other_people_do_not_break_the_page():
    hostile = ['a"b', "a\\", "a\nb 1", "a\x1b[2J", "\ud800", "} 1", "a\\nb 1"]
    hot = [[key, 0.14, 0.0] for key in hostile]
    text = exposition(look(run_of(hot=hot, partitions=[partition('0"} 9\n')]), RUNNING))
    assert "\x1b" not in text
    text.encode("utf-8")
    found = parsed(run_of(hot=hot, partitions=[partition('0"} 9\n')]))
    assert set(found["penstock_hot_key_ratio"]) >= {('a"b',), ("a\\",), ("} 1",)}
    assert list(found["penstock_partition_idle"]) == [("scores", '0"} 9\\n')]


def test_what_comes_from_data_is_bounded():
    many = [partition(str(number), number * SECOND, lag=1) for number in range(5_000)]
    found = parsed(run_of(partitions=many, hot=[[f"key {number}", 0.05, 0.0] for number in range(20)]))
    assert found["penstock_partitions"] == {(): 5_000}
    assert found["penstock_lag_events"] == {(): 5_000}
    behind = found["penstock_partition_watermark_behind_seconds"]
    assert len(behind) == PARTITIONS
    assert min(behind.values()) == 4_900
    assert "penstock_hot_key_ratio" not in found


def test_names_follow_the_rules():
    for metric in METRICS:
        assert re.fullmatch(r"penstock_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == COUNTER)
        assert metric.help.endswith(".")
        assert not re.search(r"[\n\\]", metric.help)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_every_metric_is_seen_of_a_run_that_has_everything():
    assert set(parsed([CALM, *run_of(**RICH)], RUNNING)) == {metric.name for metric in METRICS}


def test_every_metric_is_documented_and_no_other():
    said = (DOCS / "metrics.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(penstock_[a-z_]+)` \| (\w+) \|", said, re.MULTILINE))
    assert rows == {metric.name: metric.kind for metric in METRICS}
    assert set(re.findall(r"\bpenstock_[a-z_]+", said)) <= set(rows)


def test_every_concern_is_documented():
    said = (DOCS / "monitoring.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", said, re.MULTILINE)) >= set(ABOUT)


def test_the_grafana_dashboard_asks_for_nothing_else():
    board = json.loads((DOCS / "grafana.json").read_text("utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 15
    for one in asked:
        names = re.findall(r"\bpenstock_[a-z_]+", one)
        assert names
        assert set(names) <= {metric.name for metric in METRICS}
        assert 'pipeline=~"$pipeline"' in one
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(places) == len(set(places))
