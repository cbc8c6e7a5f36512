"""Bad input, line by line: null, NaN, infinite and impossible times, odd keys, odd batches, odd durations."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.types.timestamps import parse


@pytest.fixture
def play(engine):
    """A script that counts per key in one day, over a time column of this type."""

    def made(time="timestamp", unit=None, key="string", max_skew="1 hour"):
        stream = ps.events(f"at {time}, k {key}").event_time("at", unit=unit, watermark=ps.ascending(max_skew=max_skew))
        return Script(stream.key_by("k").window(ps.tumbling("1 day")).aggregate(n=ps.rows()), engine)

    return made


@pytest.mark.parametrize(("time", "unit", "value", "reason"), [
    ("timestamp", None, None, "event time is null"),
    ("double", "s", math.nan, "event time is nan"),
    ("double", "s", math.inf, "event time is inf"),
    ("double", "s", -math.inf, "event time is -inf"),
    ("string", None, "yesterday", "event time 'yesterday' cannot be read"),
    ("string", None, "", "event time '' cannot be read"),
    ("string", None, "0000-01-01T00:00:00", "cannot be read"),
    ("string", None, "10000-01-01T00:00:00", "cannot be read"),
    ("long", "s", 2**62, "outside the years 1 to 9999"),
    ("long", "us", -(2**63), "outside the years 1 to 9999"),
    ("long", "s", -62_135_596_801, "outside the years 1 to 9999"),
    ("double", "s", 1e300, "outside the years 1 to 9999"),
])  # fmt: skip
def test_a_time_that_is_none_is_quarantined_and_moves_nothing(play, time, unit, value, reason):
    script = play(time, unit)
    script.batch([{"at": value, "k": "a"}])
    (bad,) = script.quarantined
    assert bad.step == "event_time"
    assert reason in bad.reason
    assert parse("-inf") == script.W


@pytest.mark.parametrize("value", [
    "not a time", 12.5, True, 2**62, "+inf", "99:99", datetime.min.replace(tzinfo=timezone(timedelta(hours=3))),
], ids=str)  # fmt: skip
def test_a_timestamp_that_is_none_is_quarantined_by_decoding(play, value):
    script = play()
    script.batch([{"at": value, "k": "a"}])
    assert [bad.step for bad in script.quarantined] == ["decode"]


def test_a_time_in_the_far_future_is_quarantined_by_max_skew(play):
    script = play()
    script.batch([{"at": "9999-12-31", "k": "a"}, {"at": "12:00", "k": "a"}], now="12:00")
    assert "ahead of the processing clock" in script.quarantined[0].reason
    assert parse("12:00") == script.W


@pytest.mark.parametrize("time", ["1969-12-31T23:59:59.999999", "0001-01-01", "1900-01-01T12:00"])
def test_times_before_1970_are_times_like_any_other(play, time):
    script = play()
    script.batch([{"at": time, "k": "a"}])
    script.end()
    (pane,) = script.panes
    assert pane.window.start <= parse(time) < pane.window.end


def test_naive_times_are_utc_on_every_path(play):
    moment = parse("2026-01-01T12:00:00Z")
    an_hour_east = timezone(timedelta(hours=1))
    assert parse(datetime(2026, 1, 1, 12)) == parse(datetime(2026, 1, 1, 13, tzinfo=an_hour_east)) == moment
    for time, value in (("timestamp", datetime(2026, 1, 1, 12)), ("timestamp", datetime(2026, 1, 1, 12, tzinfo=UTC)),
                        ("string", "2026-01-01T12:00:00"), ("timestamp", "2026-01-01 12:00")):  # fmt: skip
        script = play(time)
        script.batch([{"at": value, "k": "a"}])
        assert moment == script.W


def test_empty_batches_are_batches(play):
    script = play()
    for now in ("12:00", "12:01"):
        assert script.batch([], now=now).panes == ()
    script.batch([{"at": "12:00", "k": "a"}])
    script.batch([])
    script.end()
    script.expect({"n": 1})


KEYS = {
    "string": ["a", "", "ä\n\x00"], "long": [0, -(2**63), 2**63 - 1], "int": [1, -1], "boolean": [True, False],
    "double": [1.5, math.inf, -math.inf], "date": [date(1, 1, 1), date(9999, 12, 31)], "binary": [b"", b"\x00\xff"],
    "timestamp": [parse("12:00"), parse("0001-01-01")], "decimal(38,2)": [Decimal("0.10"), Decimal("9" * 36 + ".25")],
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_may_be_of_any_type_and_null(play, kind):
    script = play(key=kind)
    values = [*KEYS[kind], None]
    script.batch([{"at": "12:00", "k": value} for value in values * 2])
    script.end()
    assert sorted(map(repr, (pane.key[0] for pane in script.panes))) == sorted(map(repr, values))
    assert {pane.values["n"] for pane in script.panes} == {2}


def test_minus_zero_is_zero_and_there_is_one_nan(play):
    script = play(key="double")
    script.batch([{"at": "12:00", "k": value} for value in (0.0, -0.0, math.nan, -math.nan, float("nan"))])
    script.batch([{"at": "12:00", "k": value} for value in (-0.0, math.nan)])
    script.end()
    assert sorted(pane.values["n"] for pane in script.panes) == [3, 4]


def test_many_distinct_keys_in_one_batch(play):
    """A thousand on both engines; the million below is the columnar engine's."""
    script = play(key="long")
    script.batch([{"at": "12:00", "k": value} for value in range(1_000)])
    script.end()
    assert len(script.panes) == 1_000


def test_a_million_keys_in_one_batch_are_a_million_panes():
    import numpy as np
    import pyarrow as pa

    from penstock.engine.ingest.row_steps import SourceBatch
    from penstock.engine.ingest.windows import ingest
    from penstock.engine.windows.compiled import Compiled
    from penstock.engine.windows.lifecycle import Clock
    from penstock.engine.windows.step import start, step
    from penstock.types.timestamps import MAX_TIME, MIN_TIME

    keys = 1_000_000
    rows = pa.RecordBatch.from_arrays(
        [pa.array(np.arange(keys)), pa.array(np.zeros(keys, dtype=np.int64)).cast(pa.timestamp("us", tz="UTC"))],
        names=["k", "at"],
    )
    stream = ps.events("k long, at timestamp").event_time("at", watermark=ps.by_hand()).key_by("k")
    compiled = Compiled(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()).plan)
    part = ingest(compiled, SourceBatch("events", "0", np.arange(keys), rows), MIN_TIME, 0)
    memory = step(compiled, start(compiled), [part.blob], Clock(MIN_TIME, 0)).memory
    panes = step(compiled, memory, [], Clock(MAX_TIME, 0)).panes
    assert panes.num_rows == keys
    assert panes["n"].to_numpy().sum() == keys
    assert len(np.unique(panes["k"].to_numpy())) == keys


def test_duplicate_column_names_are_refused():
    for mistake in (lambda: ps.events("a long, a string"), lambda: ps.events("a long").select("a", "a")):
        with pytest.raises(ps.PlanError, match="'a' is there twice"):
            mistake()


def test_a_row_with_an_unknown_column_is_a_mistake_of_the_test(play):
    with pytest.raises(ps.CaseError, match="column 'key'"):
        play().batch([{"at": "12:00", "key": "a"}])


def test_a_missing_column_is_null(play):
    script = play()
    script.batch([{"at": "12:00"}])
    script.end()
    script.expect({"k": None, "n": 1})


@pytest.mark.parametrize("mistake", [
    lambda: ps.tumbling("0"), lambda: ps.tumbling("-5 minutes"), lambda: ps.sliding("1 h", every="0"),
    lambda: ps.session("0"), lambda: ps.event_pairs("0"), lambda: ps.every("0"), lambda: ps.after("-1 s"),
    lambda: ps.bounded("-1 s"), lambda: ps.bounded("0", idle="0"), lambda: ps.bounded("0", max_skew="-1 s"),
])  # fmt: skip
def test_zero_and_negative_durations_are_refused(mistake):
    with pytest.raises(ps.PlanError) as error:
        mistake()
    assert error.value.instead


@pytest.mark.parametrize(("kind", "value"), [
    ("long", "1"), ("long", 1.0), ("long", True), ("long", 2**63), ("int", 2**31), ("double", "1.0"), ("boolean", 1),
    ("string", 1), ("string", "\ud800"), ("binary", "text"), ("date", "soon"), ("date", datetime(2026, 1, 1)),
    ("decimal(5,2)", 1.5), ("decimal(5,2)", "1.234"), ("decimal(5,2)", "1234.00"), ("decimal(5,2)", "x"),
    ("decimal(38,2)", Decimal("1e999999")), ("double", 10**400),
], ids=str)  # fmt: skip
def test_a_value_of_another_type_quarantines_its_row_and_names_the_column(play, kind, value):
    script = play(key=kind)
    script.batch([{"at": "12:00", "k": value}])
    (bad,) = script.quarantined
    assert bad.step == "decode"
    assert bad.reason.startswith("column 'k': ")
    assert "<class" not in bad.reason
