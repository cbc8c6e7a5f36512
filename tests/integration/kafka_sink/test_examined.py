"""The examiner of all sinks with a ledger, on Kafka: every pane as JSON and as Avro, and the answer per key."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.kafka.sink import Kafka
from penstock.connectors.latest_answers import current
from tests.integration.kafka_sink.checker import latest, rows
from tests.unit.connectors.sinks import outputs, test_examiner as examiner
from tests.unit.connectors.sinks.test_examiner import *  # noqa: F403

GIVEN: list[pa.Schema] = []


@dataclass(frozen=True, slots=True)
class Compacted(Kafka):
    """The current answer alone; the examiner then asks for no history."""

    history = False


@pytest.fixture(params=["json", "avro", "compacted"])
def sink(request: pytest.FixtureRequest, to: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A topic of each form."""
    made = to(value="avro" if request.param == "avro" else "json", compacted=request.param == "compacted")
    if made.compacted:
        made = Compacted(**{one.name: getattr(made, one.name) for one in fields(made)})
    for name in ("answers", "every", "give", "kept", "typed_rows"):
        monkeypatch.setattr(examiner, name, globals()[name])
    return made


def answers(sink: Any) -> list[tuple[Any, ...]]:
    """The answer that the topic shows."""
    return sorted(((row["team"], outputs._minute(row["window_start"]), row["points"])
                   for row in now(sink, outputs.PANES)), key=repr)  # fmt: skip


def every(sink: Any) -> list[tuple[Any, ...]]:
    """Every pane in the topic."""
    return sorted(((row["team"], row["points"], row["op"]) for row in rows(sink, outputs.SCORES)), key=repr)


def typed_rows(sink: Any) -> list[dict[str, Any]]:
    """The answer with all types."""
    return now(sink, outputs.TYPED)


def give(sink: Any, table: Any, number: int = 0, target: Any = outputs.PANES, **more: Any) -> bool:
    """Deliver, and remember what was delivered last."""
    GIVEN[:] = [target.schema]
    return outputs.give(sink, table, number, target, **more)


def kept(sink: Any) -> list[dict[str, Any]]:
    """All rows of what was delivered last."""
    return rows(sink, GIVEN[0])


def now(sink: Any, target: Any) -> list[dict[str, Any]]:
    """The current answer."""
    if sink.compacted:
        return latest(sink, target.schema)
    panes = pa.Table.from_pylist(rows(sink, target.schema), schema=target.schema)
    found: list[dict[str, Any]] = current(panes, target.keys).to_pylist()
    return found
