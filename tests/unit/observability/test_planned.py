"""The plan that a run writes beside its checkpoint: every source, stage and sink, and how rows go between them."""

from __future__ import annotations

import penstock as ps
from penstock.observability.run_metadata import FOLDER, graph_of, keep_plan, kept_plan
from penstock.storage.local import LocalStore


def read(name: str, columns: str) -> ps.Stream:
    return ps.events(f"{columns}, at timestamp", name=name).event_time("at", watermark=ps.bounded("1 minute"))


def rates(*sinks) -> ps.Pipeline:
    clicks = read("clicks", "id string, ad string").dedup("id", within="1 hour")
    shown = read("impressions", "ad string").join(clicks, on="ad", between=("0", "5 minutes"), how="left", prefix="c_")
    hourly = shown.key_by("ad").window(ps.tumbling("1 hour")).aggregate(n=ps.count("c_id"))
    return ps.pipeline("rates", hourly.write(ps.sqlite("a.db", table="rates")), *sinks)


def test_every_way_of_the_rows_is_in_the_graph():
    graph = graph_of(rates())
    kinds = {one["id"]: (one["kind"], one["depth"]) for one in graph["nodes"]}
    assert kinds == {
        "source:clicks": ("source", 0), "source:impressions": ("source", 0), "stage:0": ("stage", 1),
        "stage:1": ("stage", 2), "stage:2": ("stage", 3), "output:0": ("output", 4),
    }  # fmt: skip
    assert {(a, b) for a, b, _ in graph["edges"]} == {
        ("source:clicks", "stage:0"), ("source:impressions", "stage:1"), ("stage:0", "stage:1"),
        ("stage:1", "stage:2"), ("stage:2", "output:0"),
    }  # fmt: skip
    says = {one["id"]: dict(one["says"]) for one in graph["nodes"]}
    assert says["stage:2"]["where"].startswith("tumbling windows of 1 hour")
    assert "a.db" in says["output:0"]["to"]
    assert says["source:clicks"]["columns"] == "id string, ad string, at timestamp"


def test_a_plan_is_written_when_it_has_changed(tmp_path):
    store = LocalStore(str(tmp_path))
    assert kept_plan(store) is None
    keep_plan(store, rates(), 1)
    keep_plan(store, rates(), 2)
    assert store.names(FOLDER) == ["000000001"]
    clicks = read("clicks", "id string, ad string").dedup("id", within="1 hour")
    keep_plan(store, ps.pipeline("rates", clicks.write(ps.files("clicks"))), 3)
    assert store.names(FOLDER) == ["000000003"]
    assert kept_plan(store)["nodes"][-1]["says"][0][1].startswith("parquet files in clicks")


def test_a_plan_that_cannot_be_written_or_read_stops_nothing(tmp_path):
    (tmp_path / "penstock").write_text("a file, where a folder should be")
    store = LocalStore(str(tmp_path))
    keep_plan(store, rates(), 1)
    (tmp_path / "penstock").unlink()
    keep_plan(store, rates(), 1)
    (tmp_path / FOLDER / "000000001").write_bytes(b"nonsense")
    assert kept_plan(store) is None
