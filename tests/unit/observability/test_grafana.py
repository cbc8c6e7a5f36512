"""Is the Grafana dashboard what Grafana's own description of its JSON asks for, and does it ask for what there is?

No Grafana runs here: what is held is the classic dashboard's fields, its grid, its variables, and every query's names,
labels and functions against what /metrics says.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from penstock.observability.health.watcher import look
from penstock.observability.prometheus import COUNTER, METRICS, exposition
from tests.unit.observability.test_attention import CALM, RUNNING, run_of
from tests.unit.observability.test_metrics import RICH

BOARD = json.loads((Path(__file__).parents[3] / "docs" / "grafana.json").read_text("utf-8"))
PANELS = BOARD["panels"]
FIELDS = {
    "id": type(None), "uid": str, "title": str, "tags": list, "timezone": str, "editable": bool, "graphTooltip": int,
    "time": dict, "timepicker": dict, "templating": dict, "annotations": dict, "refresh": str, "schemaVersion": int,
    "version": int, "links": list, "panels": list,
}  # fmt: skip
UNITS = {"short", "s", "cps", "percentunit", "bytes"}
TARGETS = [target for panel in PANELS for target in panel["targets"]]
COUNTERS = {metric.name for metric in METRICS if metric.kind == COUNTER}


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """The labels that each metric has on the page of a run that has everything."""
    found: dict[str, set[str]] = {}
    for line in exposition(look([CALM, *run_of(**RICH)], RUNNING)).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', rest))
    return found


def test_the_dashboard_has_the_fields_of_one():
    assert {name: type(BOARD[name]) for name in FIELDS} == FIELDS
    assert BOARD["schemaVersion"] >= 36  # from where on a data source is named by type and uid
    assert set(BOARD["time"]) == {"from", "to"}
    assert len(BOARD["uid"]) <= 40


def test_the_panels_have_a_place_on_a_grid_of_24_and_none_lies_on_another():
    places = [panel["gridPos"] for panel in PANELS]
    assert all(set(one) == {"x", "y", "w", "h"} for one in places)
    assert all(one["x"] >= 0 and one["w"] > 0 and one["x"] + one["w"] <= 24 and one["h"] > 0 for one in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_is_of_a_kind_that_grafana_has_and_says_what_it_shows(panel):
    assert panel["type"] in ("stat", "table", "timeseries")
    assert panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["fieldConfig"]["overrides"] == []
    assert isinstance(panel["options"], dict)
    references = [target["refId"] for target in panel["targets"]]
    assert references
    assert len(references) == len(set(references))
    for one in (panel, *panel["targets"]):
        assert one["datasource"] == {"type": "prometheus", "uid": "${source}"}


def test_every_variable_that_is_used_is_asked_for():
    variables = {one["name"]: one for one in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\}?", json.dumps(PANELS)))
    assert used == set(variables) == {"source", "pipeline"}
    assert (variables["source"]["type"], variables["source"]["query"]) == ("datasource", "prometheus")
    assert variables["pipeline"]["query"]["query"] == "label_values(penstock_running, pipeline)"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"])
def test_a_query_asks_for_names_and_labels_that_there_are(target, labels):
    asked = target["expr"]
    names = re.findall(r"\bpenstock_[a-z_]+", asked)
    assert set(names) <= set(labels)
    assert asked.count("{") == asked.count("}") == len(names)
    assert asked.count("(") == asked.count(")")
    matched = re.findall(r'(\w+)=~?"', asked) + [
        one for by in re.findall(r"on\(([^)]*)\)", asked) for one in by.split(", ")
    ]
    for name in names:
        assert {*matched, *re.findall(r"{{(\w+)}}", target["legendFormat"])} <= labels[name], name
        assert asked.startswith("rate(") == (name in COUNTERS), "a counter is read as a rate, and nothing else is"
