"""Twenty good lines and a bad one, of each kind that once ended a run: twenty rows and one in quarantine."""

from __future__ import annotations

from decimal import Decimal

import penstock as ps
from tests.integration.spark.driving import caught_up, clock

HUGE = b"9" * 5_000
JSON = {
    "exponent": b'{"x": 1e1000000000000000000}',
    "exponent of a decimal": b'{"m": 1e1000000000000000000}',
    "small": b'{"m": 1e-999999999}',
    "small and huge": b'{"m": 1e-1000000000000000000000}',
    "deep": b'{"other": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "deep objects": b'{"other":' * 5_000 + b"1" + b"}" * 5_000,
    "digits": b'{"n": ' + HUGE + b"}",
    "digits of a decimal": b'{"m": ' + HUGE + b"}",
    "too many for its type": b'{"m": 81619784583895256565792947939}',
    "torn": b'{"n": 1',
    "not text": b'{"case": "\xff"}',
}
CSV = {
    "exponent": b"x,1,1e1000000000000000000,1.5,",
    "small": b"x,1,1e-999999999,1.5,",
    "digits": b"x," + HUGE + b",1,1.5,",
    "digits of a decimal": b"x,1," + HUGE + b",1.5,",
    "digits behind the point": b"x,1,0." + HUGE + b",1.5,",
    "no double": b"x,1,1,1e400,",
    "columns": b"x,1",
    "not text": b"\xff,1,1,1.5,",
}
COLUMNS = "case string, n long, m decimal(38,10), x double, at timestamp"


def test_bad_lines_of_files_are_quarantined_one_by_one(spark, tmp_path):
    """A file of each kind: ten good lines, the bad one, ten good lines; one run reads them all and ends."""
    files = tmp_path / "in"
    files.mkdir()
    for kind, lines in (("json", JSON), ("csv", CSV)):
        for name, bad in lines.items():
            good = [good_line(kind, name)] * 10
            (files / f"{name.replace(' ', '-')}.{kind}").write_bytes(b"\n".join([*good, bad, *good]) + b"\n")
    read = ps.directory(files, schema=COLUMNS, header=False, name="lines", end=True)
    timed = read.event_time("at", watermark=ps.ascending()).key_by("case")
    counted = timed.window(ps.tumbling("1 hour")).aggregate(n=ps.rows(), m=ps.max("m"))
    told = caught_up(
        ps.pipeline("poison", counted.write(ps.memory("poison")), counted.quarantine.write(ps.memory("poison-bad"))),
        tmp_path / "checkpoint",
        until="end",
    )
    bad = ps.memory("poison-bad").rows
    assert told[-1].totals.quarantined == len(bad) == len(JSON) + len(CSV)
    named = {row["reason"].partition(": ")[0] for row in bad}
    assert named == {one.name for one in files.iterdir()}
    found = {row["case"]: row["n"] for row in ps.memory("poison").rows}
    assert found == {f"{kind} {name}": 20 for kind, lines in (("json", JSON), ("csv", CSV)) for name in lines}
    assert all(row["m"] == Decimal("1.5") for row in ps.memory("poison").rows)


def good_line(kind: str, name: str) -> bytes:
    """A line that is a row, of the case of that name."""
    if kind == "csv":
        return f"csv {name},1,1.5,1.5,{clock(1)}".encode()
    return f'{{"case": "json {name}", "n": 1, "m": 1.5, "x": 1.5, "at": "{clock(1)}"}}'.encode()
