"""Can `penstock prove` give a life a topic of its own, look into it, and remove it?"""

from __future__ import annotations

import time
from pathlib import Path

from penstock.api.pipeline import Output
from penstock.connectors.sink import Batch
from penstock.testing.crash.redirect import redirected
from penstock.testing.crash.sink_rows import forget, held_by
from tests.unit.connectors.sinks.outputs import PANES, pane, panes


def test_a_life_has_a_topic_of_its_own(to):
    given = to()
    (sink,) = redirected([Output(None, "panes", given)], Path("runs/life-003"), "a1b2")
    assert (sink.topic, sink.progress_topic) == (
        f"{given.topic}_prove_a1b2_life003",
        "penstock-progress_prove_a1b2_life003",
    )
    assert held_by(sink, PANES).every == []
    (by_tasks,) = redirected([Output(None, "panes", to(parallel=True))], Path("runs/life-003"), "a1b2")
    assert by_tasks.topic.endswith("_prove_a1b2_life003")
    assert held_by(by_tasks, PANES).every == []
    writer, batch = sink.open(PANES), Batch("lineage", 4, 1, 2, "")
    writer.begin("lineage", 1)
    writer.write(batch, [panes(pane("red", 1), pane("blue", 2))])
    assert held_by(sink, PANES).every == [], "what is not committed is not there"
    writer.commit(batch)
    writer.close()
    held = held_by(sink, PANES)
    assert held.every is not None
    assert [b'"team":"red"' in value for _, value in held.every] == [True, False]
    assert held.batches == [4, 4]
    forget(sink, PANES)
    until = time.monotonic() + 10
    while held_by(sink, PANES).every and time.monotonic() < until:
        time.sleep(0.1)
    assert held_by(sink, PANES).every == []
