"""Are quarantined rows shown, exported, and put back only once? Without Spark, on a checkpoint made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.api.loader import load
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.identity import identity_of
from penstock.engine.outputs import quarantine_table
from penstock.quarantine.replay import FILE, Inbox, Repaired, chunks, put, replayed
from penstock.storage.local import LocalStore
from penstock.types.schema import schema

SOURCE = """
import penstock as ps

scores = ps.directory("in", schema="team string, points long, at timestamp", format="json", name="scores")
totals = scores.event_time("at", watermark=ps.bounded("1 minute")).key_by("team").window(ps.tumbling("1 minute"))
counted = totals.aggregate(points=ps.sum("points"))
"""
KEPT = SOURCE + 'kept = ps.pipeline("scores", counted.write(ps.sqlite("a.db", table="totals")))\n'
WRITTEN = SOURCE + (
    'written = ps.pipeline("scores", counted.write(ps.sqlite("a.db", table="totals")), '
    'counted.quarantine.write(ps.files("bad", format="json")))\n'
)
MENDED = {"team": "red", "points": 5, "at": "2026-01-01T00:00:02Z"}
ROWS = [
    (7, "decode", "a.json: column 'points': 'many' is not an integer", json.dumps({**MENDED, "points": "many"})),
    (90, "decode", "a.json: not JSON", "no JSON at all"),
]
RUN = ("checkpoint", "--pipeline", "kept.py")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """A checkpoint with two rows in quarantine."""
    monkeypatch.chdir(tmp_path)
    Path("kept.py").write_text(KEPT)
    Path("written.py").write_text(WRITTEN)
    made = LocalStore(str(tmp_path / "checkpoint"))
    identity = identity_of(made, "scores", load("kept.py").flow, 1, 1)
    write_clock(made, identity.lineage, Clocks(1))
    sink = pa.BufferOutputStream()
    pq.write_table(quarantine_table("scores", "0", ROWS), sink)
    made.create(f"penstock/quarantine/{1:012d}.parquet", sink.getvalue().to_pybytes())
    return made


def lines(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


def write(file: str, *rows: dict[str, Any]) -> None:
    Path(file).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_list_shows_where_why_and_what(store, penstock):
    said = penstock("quarantine", "list", "checkpoint")
    assert said.code == 0, said.err
    assert "scores/0 offset 7  decode: a.json: column 'points': 'many' is not an integer" in said.out
    assert "    no JSON at all\n2 rows\n" in said.out
    assert penstock("quarantine", "list", "checkpoint", "--limit", "1").out.endswith("2 rows, 1 of them shown\n")
    first, second = map(json.loads, penstock("quarantine", "list", "checkpoint", "--json").out.splitlines())
    assert (first["row"]["points"], first["offset"], first["replayed"]) == ("many", 7, False)
    assert (second["row"], second["raw"]) == (None, "no JSON at all")


def test_rows_are_exported_mended_and_put_back_once(store, penstock):
    assert penstock("quarantine", "list", "checkpoint", "--export", "bad.jsonl").code == 0
    first, second = lines("bad.jsonl")
    write("bad.jsonl", {**first, "row": MENDED}, second)
    said = penstock("quarantine", "replay", *RUN, "--from", "bad.jsonl")
    assert said.code == 0, said.err
    assert "1 row put back: the next batch of scores reads it" in said.out
    assert "1 row left alone: `row` is null" in said.out
    assert "does not run now" in said.out
    assert replayed(store) == {("scores", "0", 7)}
    again = penstock("quarantine", "replay", *RUN, "--from", "bad.jsonl")
    assert "0 rows put back" in again.out
    assert "1 row left alone: put back before" in again.out
    assert store.names("penstock/repaired") == [f"{1:012d}"]
    assert "(replayed)" in penstock("quarantine", "list", "checkpoint").out
    penstock("quarantine", "list", "checkpoint", "--export", "rest.jsonl")
    assert [row["offset"] for row in lines("rest.jsonl")] == [90]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"row": {**MENDED, "points": "5"}}, "1 of the rows in bad.jsonl are still not rows of scores"),
        ({"row": {**MENDED, "pionts": 5}}, "there is no column 'pionts'"),
        ({"row": [5]}, "`row` is [5]"),
        ({"row": MENDED, "offset": 8}, "scores/0 has no quarantined row with the offset 8"),
        ({"row": MENDED, "source": "score"}, "did you mean 'scores'?"),
    ],
)
def test_a_wrong_line_is_refused_before_anything_is_put_back(store, penstock, changed, what):
    write("bad.jsonl", {"source": "scores", "partition": "0", "offset": 7, **changed})
    said = penstock("quarantine", "replay", *RUN, "--from", "bad.jsonl")
    assert said.code == 1
    assert what in said.err
    assert store.names("penstock/repaired") == []


def test_what_cannot_be_read_or_takes_no_rows_is_refused(store, penstock):
    Path("bad.jsonl").write_text("{}\n")
    replay = ("quarantine", "replay", *RUN, "--from")
    assert "bad.jsonl, line 1 is not a quarantined row" in penstock(*replay, "bad.jsonl").err
    assert "cannot be read" in penstock(*replay, "none.jsonl").err
    assert "not on a disk of this machine" in penstock("quarantine", "list", "s3a://lake/scores").err
    assert penstock("quarantine", "list", "in").code == 1
    identity = identity_of(store, "scores", load("kept.py").flow, 1, 1)
    write_clock(store, identity.lineage, Clocks(2, finished=True))
    assert "is finished" in penstock(*replay, "bad.jsonl").err
    Path("kept.py").write_text(KEPT.replace('"scores", counted', '"other", counted'))
    assert "belongs to the pipeline 'scores'" in penstock(*replay, "bad.jsonl").err


def test_the_quarantine_of_a_sink_is_read_too(store, penstock):
    from penstock.connectors.sink import Batch
    from penstock.plan.output_schemas import target_of

    (output,) = (one for one in load("written.py").outputs if one.kind == "quarantine")
    assert penstock("quarantine", "list", "checkpoint", "--pipeline", "written.py").out.endswith("2 rows\n")
    writer = output.sink.open(target_of(output.plan, "quarantine", "bad"))
    writer.begin("lineage", 1)
    batch = Batch("lineage", 0, 1, 1, "")
    writer.write(batch, [quarantine_table("scores", "0", [(99, "map", "KeyError: 'x'", json.dumps(MENDED))])])
    writer.commit(batch)
    said = penstock("quarantine", "list", "checkpoint", "--pipeline", "written.py")
    assert "scores/0 offset 99  map: KeyError: 'x'" in said.out
    assert said.out.endswith("3 rows\n")


def test_the_inbox_is_read_a_file_a_batch(tmp_path):
    store, inbox = LocalStore(str(tmp_path)), Inbox(str(tmp_path / "penstock/repaired"))
    columns = schema("n long, b binary, at timestamp, d decimal(6,2)")
    assert inbox.latest({"batch": 3}) == {}
    row = {"n": 1, "b": "00ff", "at": "2026-01-01 00:00:00+00:00", "d": "1.50"}
    assert len(put(store, [Repaired(("a", "0", 1), row), Repaired(("b", "0", 1), row)])) == 2
    assert len(put(store, [Repaired(("a", "0", 1), row), Repaired(("a", "0", 2), {"n": "x"})])) == 1
    assert inbox.latest({}) == {"repaired": 1}
    assert inbox.behind({"repaired": 1})
    assert inbox.latest({"repaired": 1}) == inbox.latest({"repaired": 2}) == {"repaired": 2}
    assert not inbox.behind({"repaired": 2})
    assert inbox.splits({"repaired": 1}, {"repaired": 2}, ["a", "b"]) == [
        {"source": "a", "repaired": 2}, {"source": "b", "repaired": 2},
    ]  # fmt: skip
    (chunk,) = inbox.read(1, "a", columns)
    assert (chunk.partition, chunk.offsets.tolist(), chunk.undecoded) == ("repaired", [FILE], ())
    assert chunk.rows.column("b").to_pylist() == [b"\x00\xff"]
    assert list(inbox.read(2, "b", columns)) == []
    (bad,) = inbox.read(2, "a", columns)
    assert "column 'n'" in bad.undecoded[0].reason
    assert list(chunks([], columns, 0)) == []


@pytest.mark.parametrize("command", ["list", "replay"])
def test_both_commands_have_help_with_an_example(penstock, command):
    said = penstock("quarantine", command, "--help")
    assert said.code == 0
    assert f"penstock quarantine {command} checkpoints/team-scores" in said.out
