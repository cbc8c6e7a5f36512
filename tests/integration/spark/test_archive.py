"""Are the source's rows archived as they were read, each exactly once, by the tasks that read them?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import PlanError
from tests.integration.spark.driving import caught_up, put, put_text, scores, totals
from tests.integration.spark.test_outputs import BROKEN


def of(folder: Path) -> ps.Pipeline:
    """Totals of some rows, and all rows to two archives."""
    results = totals(scores(folder / "in").where("points < 100"))
    return ps.pipeline(
        "archived", results.write(ps.sqlite(folder / "a.db", table="totals")),
        results.archive.write(ps.files(folder / "events")),
        results.archive.write(ps.files(folder / "texts", format="json")), batch_rows=1,
    )  # fmt: skip


def archived(folder: Path) -> list[dict[str, Any]]:
    """All rows of one archive, which must be those of the other."""
    rows = ps.read_files(folder / "events").to_pylist()
    assert rows == ps.read_files(folder / "texts").to_pylist()
    return rows


@pytest.mark.spark
def test_every_row_is_archived_once_before_any_step(spark, tmp_path):
    put_text(tmp_path / "in", "a.json", f'{BROKEN}\n{{"team": "red", "points": 1, "at": null}}\n')
    put(tmp_path / "in", "b.json", ("red", 1, 1), ("blue", 2, 12), ("blue", 400, 13))
    put(tmp_path / "in", "c.json", ("red", 4, 3), ("blue", 8, 14))
    told = caught_up(of(tmp_path), tmp_path / "checkpoint")
    assert (told[-1].totals.read, told[-1].totals.late, told[-1].totals.quarantined) == (7, 1, 2)
    rows = archived(tmp_path)
    # The row without a time and the one that was filtered are there; the one that was no row is in quarantine alone.
    assert sorted(row["points"] for row in rows) == [1, 1, 2, 4, 8, 400]
    assert {row["archive_source"] for row in rows} == {"scores"}
    assert sorted(Counter(row["archive_batch"] for row in rows).values()) == [1, 2, 3]
    assert len({(row["archive_partition"], row["archive_offset"]) for row in rows}) == 6
    before = _data(tmp_path)
    # The last batch with rows is run again: the ledger has it, and what its tasks have staged anew is removed.
    last = max(int(one.name) for one in (tmp_path / "checkpoint/commits").iterdir() if one.name.isdigit())
    for name in (f"offsets/{last}", f"commits/{last}", f"commits/{last - 1}", f"penstock/clock/{last + 1:012d}"):
        (tmp_path / "checkpoint" / name).unlink()
    caught_up(of(tmp_path), tmp_path / "checkpoint")
    assert archived(tmp_path) == rows
    assert _data(tmp_path) == before
    put(tmp_path / "in", "d.json", ("red", 5, 40))
    caught_up(of(tmp_path), tmp_path / "checkpoint")
    assert [row["points"] for row in archived(tmp_path)][len(rows) :] == [5]


def _data(folder: Path) -> list[str]:
    return sorted(one.name for name in ("events", "texts") for one in (folder / name / "data").iterdir())


def test_an_archive_that_cannot_be_written_is_refused(tmp_path):
    results = totals(scores(tmp_path / "in"))
    with pytest.raises(PlanError, match=r"(?s)cannot be written to SQLite.*totals\.archive\.write\(ps\.files"):
        results.archive.write(ps.sqlite(tmp_path / "a.db", table="events"))
    own = scores(tmp_path / "in", schema="team string, points long, at timestamp, archive_offset long")
    with pytest.raises(PlanError, match="the source has a column 'archive_offset'"):
        totals(own).archive.write(ps.files(tmp_path / "events"))
    wide = scores(tmp_path / "other", schema="team string, points long, at timestamp, x long", name="other")
    both = scores(tmp_path / "in").union(wide.select("team", "points", "at"))
    with pytest.raises(PlanError, match="scores and other have different columns"):
        totals(both).archive.write(ps.files(tmp_path / "events"))
