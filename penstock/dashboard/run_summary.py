"""How does a run stand, and what needs attention: what the head of every page says."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.checkpoint.status import Standing, standing
from penstock.errors import PenstockError
from penstock.humanize import worded
from penstock.observability.health.run_state import situated
from penstock.observability.health.watcher import look
from penstock.observability.observation import Observation
from penstock.storage.local import LocalStore

PARTITIONS = 500


def stands(store: LocalStore, observed: list[Observation]) -> dict[str, Any]:
    """How a run stands; before it has made its checkpoint, that it is being started."""
    try:
        found = standing(store)
    except PenstockError as error:
        starting = store.read("penstock/identity") is None
        return {
            "state": "starting" if starting else "unreadable",
            "checkpoint": store.root,
            "lineage": None,
            "error": None if starting else str(error),
            "concerns": [],
            "calm": "",
        }
    seen = look(observed, situated(found, store))
    waiting = seen.situation.waiting
    told: dict[str, Any] = worded(
        {
            "state": seen.situation.state,
            "checkpoint": store.root,
            "name": found.name,
            "lineage": found.lineage,
            "shards": found.shards,
            "batch": found.batch,
            "committed": _committed(store),
            "now": found.now,
            "watermark": found.watermark,
            "behind": found.behind,
            "totals": asdict(found.totals),
            "panes": found.panes,
            "open_windows": found.open_windows,
            "held": found.held,
            "owner": None if found.owner is None else asdict(found.owner),
            "waiting": None if waiting is None else asdict(waiting),
            "notes": list(found.notes),
            "partitions": _partitions(found, seen.last),
            "error": None,
            "overview": None if seen.overview is None else seen.overview.plain(),
            "concerns": [one.plain() for one in seen.concerns],
            "calm": seen.said,
        }
    )
    return told


def _committed(store: LocalStore) -> int | None:
    return max((int(name) for name in store.names("commits") if name.isdigit()), default=None)


def _partitions(found: Standing, last: Observation | None) -> list[dict[str, Any]]:
    """Every partition: its clock as the checkpoint has it, its lag, and how long an event took to its log."""
    lag = {(one.source, one.partition): one for one in found.lag}
    skew = {(one["source"], one["partition"]): one for one in (last.partitions if last is not None else ())}
    made = []
    for one in found.partitions[:PARTITIONS]:
        at, took = lag.get((one.source, one.partition)), skew.get((one.source, one.partition), {})
        made.append(
            {
                "source": one.source,
                "partition": one.partition,
                "newest": one.newest,
                "watermark": one.watermark,
                "idle": one.idle,
                "silent_for": one.silent_for,
                "current": at and at.current,
                "end": at and at.end,
                "lag": at and at.lag,
                "to_log": took.get("to_log"),
                "from_log": took.get("from_log"),
            }
        )
    return made
