"""A run that could use none of its rows, and functions that fail, as their user sees it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.status import standing
from penstock.cli.main import main
from penstock.connectors.sink_errors import SinkError
from penstock.errors import DataError, TooManyBadRows
from penstock.quarantine.read import quarantined
from penstock.storage.local import LocalStore
from tests.integration.spark.driving import caught_up, put, put_text, scores, totals

BAD = "".join(f'{{"team": "red", "points": "many {n}", "at": "2026-01-01T00:00:0{n}Z"}}\n' for n in range(7))
HERE = "test_all_bad.py"


def pipeline(folder: Path, name: str, **how: Any) -> ps.Pipeline:
    return ps.pipeline(name, totals(scores(folder, **how)).write(ps.memory(name)))


def test_a_run_to_the_end_that_used_nothing_raises_and_keeps_what_it_has_done(spark: Any, tmp_path: Path) -> None:
    put_text(tmp_path / "in", "a.json", BAD)
    made, checkpoint = pipeline(tmp_path / "in", "nothing", end=True), str(tmp_path / "checkpoint")
    with pytest.raises(TooManyBadRows) as caught:
        made.run(checkpoint=checkpoint, batch_every="0", until="end")
    assert "all 7 rows of scores went to quarantine" in caught.value.what
    assert "column 'points': 'many 0' is not an integer (7 rows)" in caught.value.why
    assert f"penstock quarantine list {checkpoint}" in caught.value.instead
    assert standing(checkpoint).finished
    assert len(list(quarantined(LocalStore(checkpoint), None))) == 7


def test_unless_it_was_said_that_all_may_be_bad(spark: Any, tmp_path: Path) -> None:
    put_text(tmp_path / "in", "a.json", BAD)
    for name, source, run in (("on the source", {"max_bad": "100%"}, {}), ("on the run", {}, {"max_bad": "100%"})):
        made = pipeline(tmp_path / "in", name.replace(" ", "-"), end=True, **source)
        ended = made.run(checkpoint=str(tmp_path / name), batch_every="0", until="end", **run)
        assert (ended.reason, ended.progress.totals.quarantined) == ("ended", 7)


def test_a_run_without_rows_is_fine_and_one_that_goes_on_is_judged_with_what_came_before(
    spark: Any, tmp_path: Path
) -> None:
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    made = pipeline(rows, "resumed")
    caught_up(made, checkpoint)
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 2))
    caught_up(made, checkpoint)
    put_text(rows, "b.json", BAD)
    caught_up(made, checkpoint)
    put_text(rows, "c.json", BAD * 20)
    with pytest.raises(TooManyBadRows, match=r"caught up .*all 140 rows of scores"):
        caught_up(made, checkpoint)


def test_a_static_dataframe_of_which_nothing_was_used(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("red", 1, None)], "team string, points long, at timestamp")
    made = ps.pipeline("static", totals(ps.stream(frame)).write(ps.memory("static", takeover=True)))
    with pytest.raises(TooManyBadRows, match="all 1 row of events went to quarantine"):
        made.run(checkpoint=str(tmp_path / "checkpoint"), spark=spark)
    made.run(checkpoint=str(tmp_path / "again"), spark=spark, max_bad="100%")


def test_the_command_says_it_and_ends_with_1_or_with_0_where_that_was_said(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_text(tmp_path / "in", "a.json", BAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "bad.py").write_text(
        "import penstock as ps\n"
        f"rows = ps.directory({str(tmp_path / 'in')!r}, name='in', end=True, format='json',\n"
        '    schema="team string, points long, at timestamp")\n'
        'timed = rows.event_time("at", watermark=ps.ascending()).window(ps.tumbling("1 hour"))\n'
        'bad = ps.pipeline("bad", timed.aggregate(n=ps.rows()).write(ps.memory("bad", takeover=True)))\n'
    )
    run = ["run", "bad.py", "--until", "end", "--batch-every", "0"]
    assert main([*run, "-c", "one"]) == 1
    said = capsys.readouterr()
    assert "error: ended after batch" in said.err
    assert "all 7 rows of in went to quarantine" in said.err
    assert "penstock quarantine list one" in said.err
    assert main(["status", "one"]) == 0
    assert "all 7 rows that were read are in quarantine" in capsys.readouterr().out
    assert main([*run, "-c", "two", "--max-bad", "100%"]) == 0
    assert "every window is closed; all 7 rows that were read are in quarantine" in capsys.readouterr().out
    assert main([*run, "-c", "three", "--max-bad", "3"]) == 1
    assert "7 of 7 rows of in were quarantined" in capsys.readouterr().err
    assert main([*run, "-c", "four", "--max-bad", "many"]) == 1
    assert "max_bad is 'many'" in capsys.readouterr().err


def fails(row: dict[str, Any]) -> dict[str, Any]:
    return {"tries": 1 // (row["points"] - 2)}


class Failing(ps.KeyedFunction):
    output = "points long"

    def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
        context.timer("1 second")

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        raise LookupError("no such team")


def test_functions_that_fail_in_a_task_are_named_with_their_line(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.json", ("red", 1, 1), ("red", 2, 2), ("red", 3, 3))
    timed = scores(tmp_path / "in", end=True).event_time("at", watermark=ps.ascending(idle=None))
    made = ps.pipeline("tries", timed.map(fails, schema="tries long").write(ps.memory("tries")))
    made.run(checkpoint=str(tmp_path / "map"), batch_every="0", until="end")
    (bad,) = quarantined(LocalStore(str(tmp_path / "map")), None)
    line = fails.__code__.co_firstlineno + 1
    assert bad.reason.startswith(
        f"ZeroDivisionError: integer division or modulo by zero · in fails ({HERE}, line {line})"
    )
    assert "'points': 2" in bad.reason
    made = ps.pipeline("timers", timed.key_by("team").process(Failing()).write(ps.memory("timers")))
    with pytest.raises(DataError) as caught:
        made.run(checkpoint=str(tmp_path / "timers"), batch_every="0", until="end")
    line = Failing.on_timer.__code__.co_firstlineno + 1
    assert f"LookupError: no such team · in Failing.on_timer ({HERE}, line {line})" in caught.value.what


def test_a_function_of_batches_that_fails_is_named_with_its_line(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.json", ("red", 1, 1))

    def publish(rows: Any, batch: Any) -> None:
        json.loads("{" + str(rows.count()))

    made = ps.pipeline("published", totals(scores(tmp_path / "in", end=True)).write(ps.foreach_batch(publish)))
    with pytest.raises(SinkError) as caught:
        made.run(checkpoint=str(tmp_path / "checkpoint"), batch_every="0", until="end")
    assert re.search(r"failed on batch \d with 1 row: JSONDecodeError: ", caught.value.what)
    assert caught.value.what.endswith(f"publish ({HERE}, line {publish.__code__.co_firstlineno + 1})")
    assert "batch.token" in caught.value.instead
