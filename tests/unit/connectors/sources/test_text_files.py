"""JSON lines and CSV: what is a row, what is quarantined and that one bad line does not harm its neighbours."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from penstock.connectors.files.source import directory
from penstock.connectors.formats import csv, json_lines
from penstock.connectors.source import Undecoded
from penstock.errors import DataError
from penstock.types.timestamps import parse
from tests.unit.connectors.sources.reading import rows_by_offset

EVERY = "s string, n long, i int, x double, b boolean, d date, t timestamp, m decimal(6,2)"


def read(tmp_path, data, schema=EVERY, suffix="json", **options):
    """Rows and bad texts of one file, by offset."""
    (tmp_path / f"a.{suffix}").write_bytes(data if isinstance(data, bytes) else data.encode())
    return {at: row for (_, at), row in rows_by_offset(directory(tmp_path, schema=schema, **options), None).items()}


def only(tmp_path, data, schema=EVERY, **options):
    (row,) = read(tmp_path, data, schema, **options).values()
    return row


GOOD_JSON = [
    ('{"s": "a", "n": 1}', {"s": "a", "n": 1}),
    ('{"n": null, "unknown": {"deep": [1, {}]}}', {"n": None}),
    ("{}", {}),
    ('{"n": -9223372036854775808}', {"n": -(2**63)}),
    ('{"x": 1}', {"x": 1.0}),
    ('{"x": 1e-400}', {"x": 0.0}),
    ('{"b": true}', {"b": True}),
    ('{"d": "2026-01-31"}', {"d": datetime.date(2026, 1, 31)}),
    ('{"t": "2026-01-31T12:00:00Z"}', {"t": parse("2026-01-31T12:00:00Z")}),
    ('{"t": "2026-01-31 12:00:00.5"}', {"t": parse("2026-01-31T12:00:00.5Z")}),
    ('{"t": "2026-01-31T12:00:00.123456789+01:00"}', {"t": parse("2026-01-31T11:00:00.123456Z")}),
    ('{"t": "2026-01-31"}', {"t": parse("2026-01-31")}),
    ('{"t": 1767225600000000}', {"t": 1_767_225_600_000_000}),
    ('{"m": 12.5}', {"m": Decimal("12.50")}),
    ('{"m": "12.50"}', {"m": Decimal("12.50")}),
    ('{"m": 7}', {"m": Decimal("7.00")}),
    ('{"s": "\\u0000 is text"}', {"s": "\0 is text"}),
    ('{"s": "\\ud83d\\ude00 ü"}', {"s": "\U0001f600 ü"}),
    ('  {"n": 1}  ', {"n": 1}),
    ('{"n": 1}\r', {"n": 1}),
    ('{"other": NaN, "n": 1}', {"n": 1}),
]
BAD_JSON = [
    ("{", "not JSON"),
    ("null", "not a JSON object"),
    ("[1]", "not a JSON object"),
    ("5", "not a JSON object"),
    ('"x"', "not a JSON object"),
    ("garbage", "not JSON"),
    ('{"n": 1}{"n": 2}', "not JSON: Extra data"),
    ('{"n": 1,}', "not JSON"),
    ('{"s": "cut', "not JSON"),
    ('{"s": "a\tb"}', "not JSON: Invalid control character"),
    ('{"s": "a\0b"}', "not JSON"),
    ('{"n": 1}\0', "not JSON"),
    ('{"s": "\\ud800"}', "half of a surrogate pair"),
    ('{"s": 5}', "column 's': 5 is not text"),
    ('{"n": "1"}', "column 'n': '1' is not an integer"),
    ('{"n": 1.0}', "column 'n': 1.0 is not an integer"),
    ('{"n": 9223372036854775808}', "column 'n': 9223372036854775808 does not fit into 64 bits"),
    ('{"n": ' + "9" * 5000 + "}", "does not fit into 64 bits"),
    ('{"i": 2147483648}', "column 'i': 2147483648 does not fit into 32 bits"),
    ('{"n": true}', "column 'n': True is not an integer"),
    ('{"n": {"a": 1}}', "column 'n': {'a': 1} is not an integer"),
    ('{"x": NaN}', "column 'x': NaN is not JSON"),
    ('{"x": Infinity}', "beyond a double, or not JSON"),
    ('{"x": -Infinity}', "beyond a double, or not JSON"),
    ('{"x": 1e400}', "beyond a double, or not JSON"),
    ('{"x": "1"}', "column 'x': '1' is not a number"),
    ('{"b": 1}', "column 'b': 1 is not a boolean"),
    ('{"d": "2026-02-30"}', "column 'd'"),
    ('{"d": "0000-01-01"}', "column 'd'"),
    ('{"d": 5}', "column 'd': 5 is not a date"),
    ('{"t": "soon"}', "column 't'"),
    ('{"t": "0000-01-01T00:00:00"}', "column 't'"),
    ('{"t": 9223372036854775807}', "outside the years 1 to 9999"),
    ('{"t": 1.5}', "column 't': 1.5 is not a timestamp"),
    ('{"m": 12.345}', "does not fit in decimal(6,2)"),
    ('{"m": 12345.5}', "does not fit in decimal(6,2)"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000 + "x", "nested deeper than 100"),
]


@pytest.mark.parametrize(("line", "expected"), GOOD_JSON, ids=[line[:40] for line, _ in GOOD_JSON])
@pytest.mark.parametrize("beside", ["", '{"n": 7}', "garbage"])
def test_a_line_that_is_a_row(tmp_path, line, expected, beside):
    rows = list(read(tmp_path, f"{beside}\n{line}\n").values())
    empty = dict.fromkeys(name.split()[0] for name in EVERY.split(", "))
    assert rows[-1] == {**empty, **expected}
    assert type(rows[-1]["x"]) is type({**empty, **expected}["x"])


@pytest.mark.parametrize(("line", "reason"), BAD_JSON, ids=[line[:40] for line, _ in BAD_JSON])
@pytest.mark.parametrize("beside", ["", '{"n": 7, "t": "2026-01-31T12:00:00Z"}'])
def test_a_line_that_is_none_is_quarantined_with_its_text_and_the_reason(tmp_path, line, reason, beside):
    found = read(tmp_path, f"{beside}\n{line}\n{beside}\n")
    (bad,) = (row for row in found.values() if isinstance(row, Undecoded))
    assert bad.raw == line
    assert reason in bad.reason
    assert bad.reason.startswith("a.json: ")
    assert bad.offset == len(beside) + 1
    assert [row["n"] for row in found.values() if not isinstance(row, Undecoded)] == ([7, 7] if beside else [])


def test_a_line_that_is_not_utf8_keeps_its_bytes(tmp_path):
    found = read(tmp_path, b'{"s": "ok"}\n{"s": "\xff\xfe"}\n{"s": "\xc3\xbc"}\n', "s string")
    assert list(found) == [0, 12, 24]
    assert found[24] == {"s": "ü"}
    assert found[12].raw == '{"s": "\\xff\\xfe"}'
    assert "not UTF-8" in found[12].reason


def test_empty_lines_and_empty_files_hold_no_rows(tmp_path):
    assert read(tmp_path, b"") == {}
    assert read(tmp_path, b"\n\n  \n\r\n") == {}
    assert list(read(tmp_path, b'\n\n{"n": 1}\n\n{"n": 2}')) == [2, 12]


def test_a_string_of_fifty_megabytes_does_not_stop_the_others(tmp_path):
    huge = b'{"s": "' + b"x" * 50_000_000 + b'"}'
    found = read(tmp_path, b'{"n": 1}\n' + huge + b'\n{"n": 2}\n', "n long")
    assert list(found) == [0, 9, 9 + len(huge) + 1]
    assert "longer than 16,777,216 bytes" in found[9].reason
    assert len(found[9].raw) < 70_000
    (tmp_path / "b").mkdir()
    assert isinstance(only(tmp_path / "b", huge, "n long"), Undecoded)
    (tmp_path / "c").mkdir()
    assert len(only(tmp_path / "c", b'{"s": "' + b"x" * 10_000_000 + b'"}', "s string")["s"]) == 10_000_000


def test_one_bad_line_among_many_leaves_the_others_whole(tmp_path):
    lines = [json.dumps({"n": n, "t": "2026-01-31T12:00:00Z"}) for n in range(5_000)]
    lines[1_234] = "garbage"
    lines[4_321] = '{"n": 4321, "t": "never"}'
    found = list(read(tmp_path, "\n".join(lines), "n long, t timestamp").values())
    assert [bad.raw for bad in found if isinstance(bad, Undecoded)] == ["garbage", lines[4_321]]
    assert [row["n"] for row in found if isinstance(row, dict)] == [n for n in range(5_000) if n not in (1_234, 4_321)]


LINES = st.one_of(
    st.sampled_from([line for line, _ in GOOD_JSON + BAD_JSON] + ["", " "]),
    st.builds(lambda n, s: json.dumps({"n": n, "s": s}), st.integers(-(2**64), 2**64), st.text(max_size=5)),
    st.text(max_size=12).map(lambda text: text.replace("\n", "")),
    st.builds(
        lambda name, value: f'{{"{name}": {value}, "n": 5}}',
        st.sampled_from(["other", "s", "n", "i", "x", "b", "d", "t", "m"]),
        st.sampled_from(
            [
                "[" * 99 + "]" * 99,
                "[" * 100 + "]" * 100,
                "[" * 5_000 + "]" * 5_000,
                '{"a":' * 99 + "1" + "}" * 99,
                '{"a":' * 100 + "1" + "}" * 100,
                '"' + "[" * 200 + '"',
                '["]",' * 60 + '["\\"]]",[]]' + "]" * 60,
                "9" * 5_000,
                "0." + "9" * 5_000,
                "-0",
                "-0.0",
                "1e400",
                "1e1000000000000000000",
                "1e-999999999",
                "9007199254740993",
                "NaN",
                "-NaN",
                "Infinity",
                "-Infinity",
                "Inf",
                "-Inf",
                "[1, -Inf]",
                '"say: Inf, -NaN"',
                "01",
                "1.",
                ".5",
                "+1",
                '"2026-01-31T24:00"',
                '"0000-12-31T23:00:00-05:00"',
                '"9999-12-31T23:59:59-01:00"',
                '"12:00"',
                '"+inf"',
                '"20260131T120000Z"',
                '"2026-01-31t12:00:00,123456789"',
                '"2026-01-31+01:00"',
                '"2026-W05-6"',
                '" 2026-01-31"',
                '"1_0"',
                '"١٢"',
                '"1\\u0065-999999999"',
                '"+5"',
                '".5"',
                '"5."',
                "12.5000000000000000000000000000000000000000",
            ]
        ),
    ),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, max_size=60), st.integers(20, 400))
def test_a_line_is_judged_by_itself_alone(tmp_path_factory, lines, block):
    """The fate of a line does not depend on its neighbours, nor on where blocks end."""
    where = tmp_path_factory.mktemp("json")
    data = "\n".join(lines).encode(errors="surrogatepass")
    alone = {}
    at = 0
    for line in data.split(b"\n"):
        piece = json_lines.Lines(line, *(json_lines.np.array([n]) for n in (0, len(line))), at, "a.json")
        if line:
            made = json_lines._one_by_one(piece, directory(where, schema=EVERY).schema)
            alone |= dict(zip(made.offsets.tolist(), made.rows.to_pylist(), strict=True))
            alone |= {bad.offset: bad for bad in made.undecoded}
        at += len(line) + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_lines, "BLOCK", block)
        found = read(where, data)
    assert list(found) == list(alone)
    stamps = [row.pop("t") for row in found.values() if isinstance(row, dict)]
    assert stamps == [t if t is None else parse(t) for t in (r.pop("t") for r in alone.values() if isinstance(r, dict))]
    assert found == alone


CSV_GOOD = [
    ("a,1", {"k": "a", "v": 1}),
    (",", {"k": None, "v": None}),
    ('"",', {"k": "", "v": None}),
    ('"a ""b"", c",+7', {"k": 'a "b", c', "v": 7}),
    ('"two\nlines",1', {"k": "two\nlines", "v": 1}),
    ("ü,-9223372036854775808", {"k": "ü", "v": -(2**63)}),
]


@pytest.mark.parametrize(("record", "expected"), CSV_GOOD)
def test_a_record_that_is_a_row(tmp_path, record, expected):
    for header in (True, False):
        data = ("k,v\n" if header else "") + record + "\nz,9\n"
        rows = list(read(tmp_path, data, "k string, v long", "csv", header=header).values())
        assert rows == [expected, {"k": "z", "v": 9}]


@pytest.mark.parametrize(
    ("record", "raw", "reason"),
    [
        ("a", "a", "1 columns instead of 2"),
        ("a,1,2", "a,1,2", "3 columns instead of 2"),
        ("a,x", "a,x", "column 'v': 'x' is not a long"),
        ("a,0x10", "a,0x10", "column 'v': '0x10' is not a long"),
        ("a, 1", "a, 1", "column 'v': ' 1' is not a long"),
        ("a,1.0", "a,1.0", "column 'v': '1.0' is not a long"),
        ("a,9223372036854775808", "a,9223372036854775808", "does not fit in long"),
        ("a\0,x", "a\0,x", "column 'v'"),
        (b"\xff,1", "\\xff,1", "not UTF-8"),
    ],
)
def test_a_record_that_is_none_is_quarantined_with_its_text_and_the_reason(tmp_path, record, raw, reason):
    record = record if isinstance(record, bytes) else record.encode()
    found = read(tmp_path, b"k,v\ny,1\n" + record + b"\nz,2\n", "k string, v long", "csv")
    assert list(found) == [0, 1, 2]
    assert (found[1].raw, found[1].reason.startswith("a.csv: ")) == (raw, True)
    assert reason in found[1].reason
    assert [found[0]["v"], found[2]["v"]] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("double", "1.5", 1.5), ("double", "1e400", None), ("double", "NaN", "nan"),
        ("double", "-Infinity", float("-inf")),
        ("double", "nan", None), ("boolean", "True", True), ("boolean", "yes", None), ("boolean", "0", False),
        ("date", "2026-01-31", datetime.date(2026, 1, 31)), ("date", "31.1.2026", None), ("date", "0000-01-01", None),
        ("timestamp", "2026-01-31 12:00:00+01:00", parse("2026-01-31T11:00:00Z")),
        ("timestamp", "2026-01-31T12:00", parse("2026-01-31T12:00:00Z")), ("timestamp", "noon", None),
        ("decimal(5,2)", "1.50", Decimal("1.50")), ("decimal(5,2)", "1.505", None), ("decimal(5,2)", "1e2", None),
        ("decimal(5,2)", "1.5" + "0" * 100, Decimal("1.50")), ("decimal(5,2)", "0" * 100 + "1.505", None),
        ("decimal(5,2)", ".5", None), ("int", "2147483648", None), ("int", "-5", -5), ("float", "2", 2.0),
    ],
)  # fmt: skip
def test_texts_of_every_type(tmp_path, kind, text, value):
    row = only(tmp_path, f"c\n{text}\n", f"c {kind}", suffix="csv")
    if value is None:
        assert isinstance(row, Undecoded)
    elif value == "nan":
        assert row["c"] != row["c"]
    else:
        assert row == {"c": value}


def test_columns_of_a_csv_file_go_by_their_names(tmp_path):
    found = read(tmp_path, "\ufeffextra,v,k\nx,1,a\n", "k string, v long, gone double", "csv")
    assert list(found.values()) == [{"k": "a", "v": 1, "gone": None}]
    assert read(tmp_path, "v,k\n", "k string, v long", "csv") == {}
    with pytest.raises(DataError, match="its header has the column 'k' twice"):
        read(tmp_path, "k,k\n1,2\n", "k string", "csv")
    with pytest.raises(DataError, match=r"a\.csv cannot be read as CSV"):
        read(tmp_path, b"\xff\n1\n", "k string", "csv")


def test_a_record_of_too_many_fields_that_is_no_text_is_quarantined_in_silence(tmp_path, capfd):
    rows = read(tmp_path, b"s,n\na,1\n\xff,2,3\nb,4\n", "s string, n long", "csv")
    assert [rows[0], rows[2]] == [{"s": "a", "n": 1}, {"s": "b", "n": 4}]
    assert isinstance(rows[1], Undecoded)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "data", ["\n\r\nk,v\na,1\n", "\ufeffk,v\ra,1\r", '"k","v"\r\na,1', 'v,k,"one\nmore"\n1,a,\n', '"k""",k,v\nx,a,1']
)
def test_a_header_is_the_first_record_of_a_file(tmp_path, data):
    assert list(read(tmp_path, data, "k string, v long", "csv").values()) == [{"k": "a", "v": 1}]


def test_a_header_whose_quote_is_never_closed_does_not_take_the_file_with_it(tmp_path):
    with pytest.raises(DataError, match="its header has a quote that is never closed"):
        read(tmp_path, '"k,v\na,1\n', "k string, v long", "csv")


@pytest.mark.parametrize(
    ("record", "schema", "row"),
    [
        (b" ", "k string", {"k": " "}),
        (b"\t", "k string", {"k": "\t"}),
        ("\ufeffa,1".encode(), "k string, v long", {"k": "\ufeffa", "v": 1}),
        (b"a,1,\xff", "k string, v long, -", {"k": "a", "v": 1}),
        (b'"a",', "k string, v string", {"k": "a", "v": None}),
        (b'"a\r\nb"\xc3\xbc,1', "k string, v long", {"k": "a\r\nb\xfc", "v": 1}),
    ],
)
def test_a_record_of_csv_is_the_same_alone_and_beside_any_others(tmp_path, monkeypatch, record, schema, row):
    asked = schema.removesuffix(", -")
    header = ",".join(part.split()[0] for part in schema.split(", ")).encode()
    like = b",".join([b"1"] * len(schema.split(", ")))
    for before in ((), (b"",), (like,), (b"\0" + like[1:],)):
        for after in ((), (b"",), (like,), (b"\0" + like[1:],), (b"1,2,3,4,5",)):
            for block in (csv.BLOCK, *range(2, 70)) if record[:1] == b'"' else (csv.BLOCK,):
                monkeypatch.setattr(csv, "BLOCK", block)
                data = b"\n".join([header, *before, record, *after])
                found = read(tmp_path, data, asked, "csv")
                assert found[len(b"".join(before)) > 0] == row, (data, block)
        monkeypatch.undo()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\n\n"])
@pytest.mark.parametrize("blank", [" ", "\t", " \t ", "\x0b", "\x0c"])
def test_a_record_of_blanks_is_a_text_of_blanks_in_a_file_of_its_own_too(tmp_path, blank, end):
    assert read(tmp_path, blank + end, "k string", "csv", header=False) == {0: {"k": blank}}


def test_a_quote_that_is_never_closed_takes_the_rest_of_the_file(tmp_path):
    found = list(read(tmp_path, 'k,v\na,1\n"b,2\nc,3\n', "k string, v long", "csv").values())
    assert found[0] == {"k": "a", "v": 1}
    assert isinstance(found[-1], Undecoded)
    assert "c,3" in found[-1].raw


RECORDS = st.sampled_from(
    [
        "a,1",
        "b,-2",
        ",",
        '"q,",3',
        '"two\nlines",4',
        '"x\r\ny",5',
        "",
        "a",
        "a,1,2",
        "a,x",
        "é,7",
        '"he said ""no""",8',
        "   ",
        '"",9',
        '"","10"',
        ',""',
        '"a"b"c",1',
    ]
)


@settings(deadline=None, max_examples=80)
@given(st.lists(RECORDS, max_size=40), st.booleans(), st.sampled_from(["\n", "\r\n"]), st.integers(60, 300))
def test_both_ways_of_reading_csv_agree(tmp_path_factory, records, header, end, block):
    where = tmp_path_factory.mktemp("csv")
    data = "".join(record + end for record in (["k,v"] if header else []) + records)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv, "BLOCK", block)
        fast = read(where, data, "k string, v long", "csv", header=header)  # an empty text is not null, here and there
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv, "_fast", refuse)
        slow = read(where, data, "k string, v long", "csv", header=header)
    assert read(where, data + "nul\0,1" + end, "k string, v long", "csv", header=header).items() >= slow.items()
    assert list(fast) == list(slow)
    for one, other in zip(fast.values(), slow.values(), strict=True):
        if isinstance(one, Undecoded):
            assert (one.offset, one.reason) == (other.offset, other.reason)
        else:
            assert one == other


def refuse(*given):
    raise pa.ArrowInvalid("as if it could not")
