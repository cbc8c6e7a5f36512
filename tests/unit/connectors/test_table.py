"""What does a table hold that is read whole: the rows of its last reading that could be read, kept for a replay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.source import Chunk, Offsets
from penstock.connectors.table import WholeTable
from penstock.plan.graph import flow_of
from penstock.testing import Script

MINUTE = 60_000_000
COLUMNS = "code string, name string"
ORDERS = ps.events("country string, at timestamp", name="orders")


def orders() -> ps.Stream:
    return ORDERS.event_time("at", watermark=ps.bounded("1 minute"))


def put(path: Path, *rows: tuple[Any, ...]) -> Path:
    """Write a table, by the suffix of its name, and rename it when it is whole."""
    aside = path.with_name(f"_{path.name}")
    if path.suffix == ".csv":
        aside.write_text("\n".join(["code,name", *(f"{code},{name}" for code, name in rows)]) + "\n")
    elif path.suffix == ".json":
        aside.write_text("".join(json.dumps({"code": code, "name": name}) + "\n" for code, name in rows) or "\n")
    else:
        pq.write_table(pa.table({"code": [code for code, _ in rows], "name": [name for _, name in rows]},
                                pa.schema([("code", pa.string()), ("name", pa.string())])), aside)  # fmt: skip
    os.utime(aside, ns=(0, put.times))
    put.times += 1
    os.rename(aside, path)
    return path


put.times = 1  # type: ignore[attr-defined]


class Reading:
    """A reader as a run drives it, from position to position."""

    def __init__(self, table: Any, folder: Path, run: str = "one") -> None:
        self.reader: WholeTable = table.changes.source.reader.kept_under(str(folder / "checkpoint"), run)
        self.at: Offsets = self.reader.start()

    def look(self, now: int) -> list[tuple[Any, ...]]:
        """The changes of a batch."""
        before, self.at = self.at, self.reader.latest(self.at, now, 1)
        return self.read(before, self.at)

    def read(self, before: Offsets, after: Offsets) -> list[tuple[Any, ...]]:
        chunks = [chunk for split in self.reader.splits(before, after) for chunk in self.reader.read(split)]
        return [tuple(row.values()) for chunk in chunks for row in chunk.rows.to_pylist()]

    @property
    def notes(self) -> list[str]:
        return self.reader.notes(self.at)


@pytest.mark.parametrize("name", ["countries.parquet", "countries.csv", "countries.json"])
def test_a_file_is_read_whole_and_again_when_it_is_time(tmp_path: Path, name: str) -> None:
    file = put(tmp_path / name, ("DE", "Germany"), ("FR", "France"))
    reading = Reading(ps.table(file, schema=COLUMNS, reload="10 minutes"), tmp_path)
    assert reading.look(0) == [("DE", "Germany", None), ("FR", "France", None)]
    put(file, ("DE", "Deutschland"))
    assert reading.look(9 * MINUTE) == []
    assert reading.look(10 * MINUTE) == [
        ("DE", "Germany", True), ("FR", "France", True), ("DE", "Deutschland", None)]  # fmt: skip
    assert reading.look(30 * MINUTE) == []


def test_a_file_that_says_the_same_again_is_no_change(tmp_path: Path) -> None:
    file = put(tmp_path / "countries.csv", ("DE", "Germany"))
    reading = Reading(ps.table(file, schema=COLUMNS, reload="0"), tmp_path)
    reading.look(0)
    put(file, ("DE", "Germany"))
    assert reading.look(1) == []
    assert reading.at["version"] == 1


def test_without_reload_it_is_read_once_a_run(tmp_path: Path) -> None:
    file = put(tmp_path / "countries.csv", ("DE", "Germany"))
    table = ps.table(file, schema=COLUMNS)
    first = Reading(table, tmp_path)
    first.look(0)
    put(file, ("DE", "Deutschland"))
    assert first.look(1000 * MINUTE) == []
    second = Reading(table, tmp_path, run="two")
    second.at = first.at
    assert second.look(1000 * MINUTE)[-1] == ("DE", "Deutschland", None)


def test_a_batch_that_is_run_again_has_what_it_had_whatever_the_file_has_become(tmp_path: Path) -> None:
    file = put(tmp_path / "countries.csv", ("DE", "Germany"))
    reading = Reading(ps.table(file, schema=COLUMNS, reload="0"), tmp_path)
    start = reading.at
    reading.look(0)
    one = reading.at
    put(file, ("FR", "France"))
    changes = reading.look(1)
    os.remove(file)
    again = Reading(ps.table(file, schema=COLUMNS, reload="0"), tmp_path, run="after a crash")
    assert again.read(one, reading.at) == changes
    assert again.read(start, one) == [("DE", "Germany", None)]
    places = [chunk.offsets.tolist() for split in again.reader.splits(one, reading.at)
              for chunk in again.reader.read(split)]  # fmt: skip
    assert places[0] == sorted(set(places[0]))


def test_what_was_kept_of_readings_long_past_is_let_go(tmp_path: Path) -> None:
    file = tmp_path / "countries.csv"
    table = ps.table(file, schema=COLUMNS, reload="0")
    reading = Reading(table, tmp_path)
    for n in range(30):
        put(file, ("DE", str(n)))
        before = reading.at
        reading.look(n)
        reading.reader.committed(before)
        assert reading.read(before, reading.at)
    kept = list((tmp_path / "checkpoint/penstock/tables/table-countries").iterdir())
    assert len(kept) <= 3
    table.changes.source.reader.committed(reading.at)  # one that has no folder has nothing to let go


BROKEN = {
    "gone": (lambda file: os.remove(file), "there is none of that name"),
    "cut off": (lambda file: file.write_bytes(b"PAR1"), "cannot be read as Parquet"),
    "empty": (lambda file: file.write_bytes(b""), "it is empty"),
    "another": (lambda file: pq.write_table(pa.table({"code": ["DE"]}), file), "it has no column 'name'"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_file_that_cannot_be_read_again_leaves_the_last_good_one_and_is_told(
    tmp_path: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = put(tmp_path / "countries.parquet", ("DE", "Germany"))
    reading = Reading(ps.table(file, reload="10 minutes"), tmp_path)
    reading.look(0)
    spoil, why = BROKEN[how]
    spoil(file)
    assert reading.look(10 * MINUTE) == []
    assert why in reading.notes[0]
    assert "it stands as it was read at" in reading.notes[0]
    assert capfd.readouterr().err.count("could not be read again") == 1
    assert reading.look(10 * MINUTE + MINUTE) == []
    assert capfd.readouterr().err == ""
    put(file, ("DE", "Deutschland"))
    assert reading.look(12 * MINUTE)[-1] == ("DE", "Deutschland", None)
    assert reading.notes == []


@pytest.mark.parametrize("how", BROKEN)
def test_the_first_reading_must_succeed(tmp_path: Path, how: str) -> None:
    file = put(tmp_path / "countries.parquet", ("DE", "Germany"))
    reading = Reading(ps.table(file, schema=COLUMNS), tmp_path)
    BROKEN[how][0](file)
    with pytest.raises(ps.DataError) as error:
        reading.look(0)
    assert "the table 'countries' cannot be read" in error.value.what
    assert BROKEN[how][1] in error.value.what
    assert "start again" in error.value.instead


def test_a_csv_without_a_column_and_lines_that_are_no_rows_are_not_taken_for_a_table(tmp_path: Path) -> None:
    file = put(tmp_path / "countries.csv", ("DE", "Germany"))
    reading = Reading(ps.table(file, schema=COLUMNS, reload="0"), tmp_path)
    reading.look(0)
    file.write_text("code,nom\nDE,Allemagne\n")
    reading.look(1)
    assert "it has no column 'name'" in reading.notes[0]
    lines = tmp_path / "lines.json"
    lines.write_text('[{"code": "DE"}]\n')
    with pytest.raises(ps.DataError, match="none of its rows can be used"):
        Reading(ps.table(lines, schema=COLUMNS), tmp_path).look(0)


@pytest.mark.parametrize("data", [
    "\n\ncode,name\nDE,Germany\n", "code,name\rDE,Germany\r", 'code,"more\nof it",name\nDE,x,Germany\n',
])  # fmt: skip
def test_a_header_is_the_first_record_of_a_csv(tmp_path: Path, data: str) -> None:
    file = tmp_path / "countries.csv"
    file.write_bytes(data.encode())
    assert Reading(ps.table(file, schema=COLUMNS), tmp_path).look(0) == [("DE", "Germany", None)]


def test_an_empty_table_is_one(tmp_path: Path) -> None:
    file = put(tmp_path / "countries.json", ("DE", "Germany"))
    reading = Reading(ps.table(file, schema=COLUMNS, reload="0"), tmp_path)
    reading.look(0)
    put(file)
    assert reading.look(1) == [("DE", "Germany", True)]
    assert Reading(ps.table([], schema=COLUMNS), tmp_path).look(0) == []
    assert Reading(ps.table(pa.table({"code": pa.array([], pa.string())})), tmp_path).look(0) == []


def test_rows_that_cannot_be_decoded_are_quarantined_and_the_others_are_the_table(tmp_path: Path) -> None:
    file = tmp_path / "limits.csv"
    file.write_text("id,most\na,1\nb,many\n")
    reading = Reading(ps.table(file, schema="id string, most long"), tmp_path)
    before, reading.at = reading.at, reading.reader.latest(reading.at, 0, None)
    (split,) = reading.reader.splits(before, reading.at)
    (chunk,) = reading.reader.read(split)
    assert isinstance(chunk, Chunk)
    assert chunk.rows.to_pylist() == [{"id": "a", "most": 1, "_removed": None}]
    assert "'many'" in chunk.undecoded[0].reason
    rows = Reading(ps.table([{"id": "a", "most": "x"}, {"id": "b", "most": 2}], schema="id string, most long",
                            name="rows"), tmp_path)  # fmt: skip
    assert rows.look(0) == [("b", 2, None)]


def test_data_frames_of_all_kinds(tmp_path: Path) -> None:
    arrow = pa.table({"code": ["DE"], "n": pa.array([1], pa.int32()), "at": pa.array([0], pa.timestamp("ns")),
                      "price": pa.array([1.5]), "d": pa.array([None], pa.decimal128(10, 2))})  # fmt: skip
    table = ps.table(arrow)
    assert str(table.schema) == "code string, n int, at timestamp, price double, d decimal(10,2)"
    assert table.name == "table"
    pandas = arrow.select(["code", "n"]).to_pandas()
    for number, given in enumerate((pandas, arrow.select(["code", "n"]).to_batches()[0])):
        assert Reading(ps.table(given, name=f"t{number}"), tmp_path).look(0) == [("DE", 1, None)]


def joined(table: Any, **said: Any) -> ps.Rows:
    return orders().join_table(table, on={"country": "code"}, how="left", **said)


def test_the_kit_plays_a_table_with_the_first_batch(engine: str, tmp_path: Path) -> None:
    given = [("DE", "Germany"), ("FR", "France")]
    rows = ps.table([{"code": code, "name": name} for code, name in given], schema=COLUMNS, name="countries")
    for table in (rows, ps.table(put(tmp_path / "countries.parquet", *given))):
        script = Script(joined(table, broadcast=True), engine)
        script.batch([{"country": "DE", "at": "12:00"}, {"country": "IT", "at": "12:00"}])
        script.expect_rows({"country": "DE", "name": "Germany"}, {"country": "IT", "name": None})
        script.batch([{"country": "DE", "at": "12:01"}, {"@source": "countries", "code": "DE", "_removed": True}])
        script.expect_rows({"country": "DE", "name": None})
        assert script.W == script.partitions()["orders/0"].watermark
        assert script.run.open_windows() == 1


class Banned(ps.KeyedFunction):
    """Orders from countries on a list."""

    output = "country string, why string"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        if key in context.rules:
            context.emit(country=key, why=context.rules[key]["name"])


def test_a_table_may_be_the_rules(engine: str) -> None:
    table = ps.table([{"code": "XX", "name": "nowhere"}], schema=COLUMNS, name="banned")
    ruled = orders().key_by("country").process(Banned(), rules=table, rule_key="code")
    script = Script(ruled, engine)
    script.batch([{"country": "XX", "at": "12:00"}, {"country": "DE", "at": "12:00"}])
    script.expect_rows("country  why\nXX  nowhere")
    assert "until a reading has it no more" in ruled.explain()


def test_it_says_how_it_is_read_and_what_is_kept() -> None:
    said = joined(ps.table("countries.csv", schema=COLUMNS, reload="10 minutes"), broadcast=True).explain()
    assert f"table:  countries ({COLUMNS})" in said
    assert "read whole from countries.csv when a run starts, and again every 10 minutes of processing time" in said
    assert "on every shard, until a reading has it no more" in said
    assert "to:     any shard, evenly" in said
    assert joined(ps.table("countries.csv", schema=COLUMNS)).check() == ()


class Endless:
    """A DataFrame that is a stream."""

    isStreaming, toArrow = True, None  # noqa: N815


@pytest.mark.parametrize(
    ("made", "what", "instead"),
    [
        (lambda: ps.table("countries.txt"), "does not say by its name what format", 'format="csv"'),
        (lambda: ps.table("countries.csv", format="cvs"), "no format 'cvs'", "did you mean 'csv'?"),
        (lambda: ps.table("countries.csv"), "does not say its columns", 'schema="code string'),
        (lambda: ps.table("nowhere/countries.parquet"), "cannot be read", "schema=…"),
        (lambda: ps.table([{"a": 1}]), "does not say its columns", "ps.table(rows, schema="),
        (lambda: ps.table([{"a": 1}], schema="a long", reload="1 minute"), "reload= of a table that is in hand",
         "name the file"),
        (lambda: ps.table(7), "was given 7", "ps.table("),
        (lambda: ps.table(Endless()), "was given a streaming DataFrame", "ps.stream(df)"),
        (lambda: ps.table([], schema="_removed boolean"), "a column '_removed'", "another name"),
        (lambda: joined(ps.table([], schema=COLUMNS), deleted="gone"), "deleted='gone'", "leave deleted= out"),
        (lambda: joined(ps.table([], schema=COLUMNS), broadcast="yes"), "broadcast is 'yes'", "broadcast=True"),
        (lambda: ps.table("c.csv", schema=COLUMNS).changes.source.reader.kept_under(None, "run"),
         "not on a local disk", "a folder that all machines see"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused(made: Any, what: str, instead: str) -> None:
    with pytest.raises(ps.PlanError) as error:
        made()
    assert what in error.value.what
    assert instead in error.value.instead


def test_where_a_table_lies_binds_a_checkpoint() -> None:
    stream = ps.events("code string, name string, gone boolean", name="countries")
    by_key, everywhere = (joined(stream, deleted="gone", broadcast=one).stage for one in (False, True))
    assert by_key.operator.binding(by_key.sides)["join_table"] == "gone"
    assert everywhere.operator.binding(everywhere.sides)["join_table"] == "gone on every shard"


def test_two_tables_of_one_name_are_refused_and_one_may_be_read_twice() -> None:
    one, other = (ps.table([{"code": "DE", "name": name}], schema=COLUMNS) for name in ("Germany", "Deutschland"))
    with pytest.raises(ps.PlanError, match="two sources are called 'table'"):
        flow_of((joined(one).join_table(other, on={"country": "code"}, prefix="other_").stage,))
    with pytest.raises(ps.PlanError, match="two sources are called 'table'"):
        flow_of((joined(one).stage, joined(other).stage))
    assert len(flow_of((joined(one).join_table(one, on={"country": "code"}, prefix="other_").stage,)).inputs) == 2


def test_prove_says_that_it_cannot_play_a_table(tmp_path: Path) -> None:
    from penstock.testing.crash.input_tape import recorded

    table = ps.table([{"code": "DE", "name": "Germany"}], schema=COLUMNS)
    scores = ps.game_scores(events=10).event_time("at", watermark=ps.bounded("1 second"))
    output = scores.join_table(table, on={"team": "code"}, how="left").write(ps.memory("rows"))
    with pytest.raises(ps.PenstockError, match="a table that is read whole"):
        recorded(ps.pipeline("p", output), 3, 10)
