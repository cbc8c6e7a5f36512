"""Values as a hostile or a careless producer writes them: texts of numbers, days, moments and words, of every form."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from decimal import Decimal
from random import Random

DECIMALS = (
    "decimal(1,0)",
    "decimal(1,1)",
    "decimal(5,2)",
    "decimal(9,9)",
    "decimal(10,2)",
    "decimal(18,0)",
    "decimal(19,4)",
    "decimal(38,0)",
    "decimal(38,10)",
    "decimal(38,18)",
    "decimal(38,38)",
)
KINDS = ("int", "long", "float", "double", "boolean", "string", "date", "timestamp", *DECIMALS)
TIMES = (62_135_596_800_000_000, 253_402_300_800_000_000, 1_767_225_600_000_000)
ENDS = (0, 1, *(2**bits for bits in (31, 53, 63, 64, 127, 128)), *(10**power for power in (9, 18, 19, 38)), *TIMES)
FORMS = (
    '{"v":VALUE}',
    '{"v":VALUE,"n":7}',
    '{"n":7, "v": VALUE}',
    '{"other":VALUE,"v":GOOD}',
    '{"v":GOOD,"other":VALUE}',
    '{"v":GOOD,"v":VALUE}',
    '{"v":VALUE,"v":GOOD}',
    '{"other":VALUE,"other":1,"v":GOOD}',
    '{"\\u0076":VALUE}',
    ' { "n" : 5 , "v"\t: VALUE } ',
    '{"v": VALUE}\r',
    '\ufeff{"v":VALUE}',
    '{"v":VALUE}}',
    '{"v":VALUE} x',
    '{"v":VALUE}{}',
    '{"v":VALUE}\x0b',
    '{"v":VALUE}\xa0',
    '{"v":VALUE,}',
    '{"deep":{"v":[VALUE]},"v":GOOD}',
    '{"v":GOOD,"n":VALUE}',
    '{"VALUE":1,"v":GOOD}',
    '[{"v":VALUE}]',
)
FAR = (10, 18, 28, 37, 38, 39, 76, 100, 300, 308, 309, 323, 324, 325, 400, 999, 5_000, 99_999, 999_999_999, 10**18)
POWERS = (0, 1, -1, 2, 3, -2, *FAR, *(-power for power in FAR), 10**30)
S = tuple(
    int(one)
    for one in [
        "0",
        "1",
        "-1",
        "2",
        "3",
        "-2",
        "10",
        "-10",
        "18",
        "-18",
        "28",
        "37",
        "38",
        "39",
        "-37",
        "-38",
        "-39",
        "76",
        "100",
        "300",
        "308",
        "309",
        "-308",
        "-323",
        "-324",
        "-325",
        "-400",
        "400",
        "999",
        "-999",
        "5000",
        "-5000",
        "99999",
        "999999999",
        "-999999999",
        "1000000000000000000",
        "-1000000000000000000",
        "1000000000000000000000000000000",
    ]
)
LENGTHS = (*range(1, 43), 56, *range(75, 82), 100, 101, 120, 308, 309, 400, 1_000)
HS = tuple(
    int(one)
    for one in [
        "1",
        "1",
        "2",
        "3",
        "5",
        "8",
        "9",
        "10",
        "15",
        "16",
        "17",
        "18",
        "19",
        "20",
        "21",
        "25",
        "28",
        "29",
        "30",
        "36",
        "37",
        "38",
        "39",
        "40",
        "41",
        "42",
        "56",
        "75",
        "76",
        "77",
        "80",
        "81",
        "100",
        "101",
        "120",
        "308",
        "309",
        "400",
        "1000",
    ]
)
MANY = (4_299, 4_300, 4_301, 5_000)
SIGNS = "aZ 5-+.:,;_\"'\\/{}[]\x7f\x80\x85\xa0ßéſK\u0660\u0665\u06f3\u2028\ufeff\uff11\U0001d7ce\U0001f600"
WORDS = """
NaN|nan|-NaN|NAN|sNaN|NaN123|Infinity|-Infinity|+Infinity|inf|-inf|+inf|INF|infinity|null|NULL|None|nil|true|
false|True|FALSE|tRuE|yes|no|t|f|0|1|-|+|.|e|E5|0x10|0X1F|0b1|0o7|0x1p3|1_000|1,000|1e|1e+|--1|+-1|1.|.5|-.5|
+.5|-0|+0|-0.0|0.0|00|007|-007|+7|1.5.5|1 000|1d|1f|1L|١٢|１２|1２|12 | 12|\t12|12\xa0|²|½|𝟏𝟐|1e５|−1|(1)|$1|1%
""".replace("\n", "").split("|")
MOMENTS = """
12:00|12:00:00|noon|now|today|epoch|2026|2026-01|20260131|2026-W05-6|2026W056|2026-031|26-01-31|2026-1-31|
2026/01/31|31.1.2026|-2026-01-31|+2026-01-31|02026-01-31|2026-01-31T|2026-01-31T1|2026-01-31T12|2026-01-31T12Z|
20260131T120000Z|20260131T120000|2026-01-31T12:00:00,5|2026-01-31t12:00:00z|2026-01-31T12:00:00z|
2026-01-31_12:00:00|2026-01-31  12:00:00|2026-01-31T12:00:00 Z|2026-01-31T12:00:00 +01:00|2026-01-31T12:00:00+1|
2026-01-31T12:00:00+01|2026-01-31T12:00:00+0100|2026-01-31T12:00:00+01:00:30|2026-01-31T12:00+24:00|
2026-01-31T12:00+23:59|2026-01-31T12:00-00:00|2026-01-31T12:00:00.|2026-01-31T12:00:00.Z|2026-01-31T24:00:00|
2026-01-31T23:59:60|2026-01-31T12:60:00|2026-01-31T25:00|2026-02-29|2024-02-29|1900-02-29|2000-02-29|2026-04-31|
2026-00-10|2026-13-01|2026-01-00|0000-01-01|0001-01-01|9999-12-31|10000-01-01|0001-01-01T00:00:00Z|
0001-01-01T00:00:00+00:01|0001-01-01T00:00:00-00:01|9999-12-31T23:59:59.999999Z|
9999-12-31T23:59:59.999999-00:01|9999-12-31T23:59:59.9999999Z|1969-12-31T23:59:59.999999999Z|1582-10-10|
2026-01-31T12:00:00UTC|2026-01-31T12:00:00[UTC]|2026-01-31T12:00:00 Europe/Berlin| 2026-01-31|2026-01-31 |
2026-01-31T12:00:00Z |２０２６-01-31|2026-01-31T12:00:0０Z|2026–01–31|1767225600|1767225600000|1767225600000000|-1|0|
+inf|-inf|inf
""".replace("\n", "").split("|")
TS = [
    "12:00",
    "12:00:00",
    "noon",
    "now",
    "today",
    "epoch",
    "2026",
    "2026-01",
    "20260131",
    "2026-W05-6",
    "2026W056",
    "2026-031",
    "26-01-31",
    "2026-1-31",
    "2026/01/31",
    "31.1.2026",
    "-2026-01-31",
    "+2026-01-31",
    "02026-01-31",
    "2026-01-31T",
    "2026-01-31T1",
    "2026-01-31T12",
    "2026-01-31T12Z",
    "20260131T120000Z",
    "20260131T120000",
    "2026-01-31T12:00:00,5",
    "2026-01-31t12:00:00z",
    "2026-01-31T12:00:00z",
    "2026-01-31_12:00:00",
    "2026-01-31  12:00:00",
    "2026-01-31T12:00:00 Z",
    "2026-01-31T12:00:00 +01:00",
    "2026-01-31T12:00:00+1",
    "2026-01-31T12:00:00+01",
    "2026-01-31T12:00:00+0100",
    "2026-01-31T12:00:00+01:00:30",
    "2026-01-31T12:00+24:00",
    "2026-01-31T12:00+23:59",
    "2026-01-31T12:00-00:00",
    "2026-01-31T12:00:00.",
    "2026-01-31T12:00:00.Z",
    "2026-01-31T24:00:00",
    "2026-01-31T23:59:60",
    "2026-01-31T12:60:00",
    "2026-01-31T25:00",
    "2026-02-29",
    "2024-02-29",
    "1900-02-29",
    "2000-02-29",
    "2026-04-31",
    "2026-00-10",
    "2026-13-01",
    "2026-01-00",
    "0000-01-01",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
    "0001-01-01T00:00:00-00:01",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999-00:01",
    "9999-12-31T23:59:59.9999999Z",
    "1969-12-31T23:59:59.999999999Z",
    "1582-10-10",
    "2026-01-31T12:00:00UTC",
    "2026-01-31T12:00:00[UTC]",
    "2026-01-31T12:00:00 Europe/Berlin",
    " 2026-01-31",
    "2026-01-31 ",
    "2026-01-31T12:00:00Z ",
    "２０２６-01-31",
    "2026-01-31T12:00:0０Z",
    "2026–01–31",
    "1767225600",
    "1767225600000",
    "1767225600000000",
    "-1",
    "0",
    "+inf",
    "-inf",
    "inf",
]


def number(rng: Random, kind: str) -> str:
    """A number, or what looks like one, often near the edges of a type."""
    way = rng.randrange(12)
    if way == 0:
        return rng.choice(WORDS)
    if way == 1:
        return str((rng.choice(ENDS) + rng.randint(-2, 2)) * rng.choice((1, -1)))
    if way == 2:
        (value,) = struct.unpack("<d", rng.randbytes(8))
        return repr(value)
    if way == 3:
        return repr(rng.choice((1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 0.1, 1e16, 1e22, 2.0**53)))
    if way in (4, 5, 6) and kind.startswith("decimal"):
        return near(rng, kind)
    if way == 7:
        return str(rng.randint(-(10 ** rng.randint(1, 6)), 10**6)) + rng.choice(
            ("", ".0", ".5", ".25", ".10", "e2", "e-2")
        )
    if way == 8 and rng.random() < 0.2:
        return _digits(rng, rng.choice(MANY))
    text = _digits(rng, rng.choice(LENGTHS))
    if rng.random() < 0.9:
        text = text.lstrip("0") or "0"
    if rng.random() < 0.5:
        text += "." + _digits(rng, rng.choice(LENGTHS))
    if rng.random() < 0.2:
        text += ("" if "." in text else ".") + "0" * rng.choice(LENGTHS)
    if rng.random() < 0.4:
        text += rng.choice("eE") + rng.choice(("", "+", "")) + str(rng.choice(POWERS)).replace("+-", "-")
    return rng.choice(("", "", "", "-", "-", "+")) + text.replace("+-", "-")


def near(rng: Random, kind: str) -> str:
    """A number at the edge of what a decimal type can hold, written in one way or another."""
    precision, scale = (int(part) for part in kind[8:-1].split(","))
    digits = rng.choice((precision - 1, precision, precision, precision, precision + 1, precision + 2, 1))
    whole = rng.choice((10**digits - 1, 10**digits, int(_digits(rng, max(digits, 1)))))
    shift = -scale + rng.choice((0, 0, 0, 0, 1, -1, rng.randint(-40, 40)))
    sign = rng.choice(("", "", "-"))
    if rng.random() < 0.3:
        return f"{sign}{whole}e{shift}"
    if rng.random() < 0.3:
        zeros = rng.choice((1, 2, 5, 38, 76))
        return f"{sign}{whole}{'0' * zeros}{rng.choice('eE')}{shift - zeros}"
    text = (
        format(Decimal(whole).scaleb(shift), "f") if abs(shift) < 100 and len(str(whole)) < 28 else _point(whole, shift)
    )
    if "." in text and rng.random() < 0.3:
        text += "0" * rng.choice((1, 2, 10, 38, 60))
    return sign + text


def _point(whole: int, shift: int) -> str:
    digits = str(whole)
    if shift >= 0:
        return digits + "0" * shift
    digits = digits.rjust(-shift + 1, "0")
    return f"{digits[:shift]}.{digits[shift:]}"


def _digits(rng: Random, count: int) -> str:
    if rng.random() < 0.1:
        return rng.choice("0195") * count
    return "".join(rng.choices("0123456789", k=count))


def moment(rng: Random) -> str:
    """A day or a moment, or what looks like one."""
    if rng.random() < 0.35:
        return rng.choice(MOMENTS)
    year = rng.choice(
        (0, 1, 2, 1582, 1899, 1969, 1970, 2000, 2024, 2026, 2262, 9998, 9999, 10_000, rng.randint(1, 9999))
    )
    month, day = rng.choice((0, 1, 2, 2, 12, 13, rng.randint(1, 12))), rng.choice((0, 1, 28, 29, 30, 31, 32))
    text = f"{year:04}-{month:02}-{day:02}"
    if rng.random() < 0.3:
        return text
    text += rng.choice("TTT  t") + f"{rng.choice((0, 12, 23, 24)):02}:{rng.choice((0, 59, 60)):02}"
    if rng.random() < 0.85:
        text += f":{rng.choice((0, 30, 59, 59, 60, 61)):02}"
        if rng.random() < 0.6:
            text += "." + _digits(rng, rng.randint(1, 9))
    zone = f"{rng.choice('+-')}{rng.choice((0, 1, 5, 14, 23, 24)):02}:{rng.choice((0, 1, 30, 59, 60)):02}"
    return text + rng.choice(("", "", "Z", "Z", zone, zone, "z", zone.replace(":", "")))


def text(rng: Random) -> str:
    """A text of odd signs, among them half of a surrogate pair and signs that steer."""
    some = "".join(rng.choices(SIGNS, k=rng.choice((0, 1, 2, 5, 20, 60))))
    if rng.random() < 0.1:
        some += rng.choice(("\ud800", "\udfff", "\udc00\ud800"))
    if rng.random() < 0.1:
        some += rng.choice(("\0", "\x01", "\x1b", "\t", "\r"))
    return some


def plain(rng: Random, kind: str) -> str:
    """A text that a type of CSV, or a string of JSON, may hold: mostly of the type, sometimes of another."""
    if rng.random() < 0.1:
        kind = rng.choice(KINDS)
    if kind in ("date", "timestamp"):
        return moment(rng)
    if kind == "string":
        return text(rng)
    if kind == "boolean":
        return rng.choice(WORDS)
    return spoilt(rng, number(rng, kind))


def spoilt(rng: Random, some: str) -> str:
    """The text, or one with a sign too many or another in its place."""
    if rng.random() > 0.08:
        return some
    at = rng.randint(0, len(some))
    return some[:at] + rng.choice((*SIGNS, "_", "e", "E", "-", "+", ".", "0", "x")) + some[at + rng.randrange(2) :]


def good(rng: Random, kind: str) -> str:
    """A value of JSON that is surely of a type, as neighbours have it."""
    if kind in ("int", "long"):
        return str(rng.randint(-1000, 1000))
    if kind in ("float", "double"):
        return rng.choice(("1.5", "-2.25", "3", "1e3"))
    if kind == "boolean":
        return rng.choice(("true", "false"))
    if kind == "string":
        return json.dumps(rng.choice(("a", "bcd", "", "ü")), ensure_ascii=False)
    if kind == "date":
        return rng.choice(('"2026-01-31"', '"1969-12-31"'))
    if kind == "timestamp":
        return rng.choice(('"2026-01-31T12:00:00Z"', '"2026-01-31 12:00:00.5+01:00"', '"2026-01-31T12:00:00"'))
    precision, scale = (int(part) for part in kind[8:-1].split(","))
    return str(rng.randint(0, 9)) if precision > scale else rng.choice(("0.1", "0.0", "-0.9"))


def json_value(rng: Random, kind: str) -> str:
    """A value of JSON, or what looks like one, for a column of a type."""
    way = rng.random()
    if way < 0.04:
        return rng.choice(
            ("null", "true", "false", "[]", "{}", "[1]", '{"v": 1}', '"', "", "[", "nul", '""', '"a" "b"')
        )
    if way < 0.06:
        depth = rng.choice((2, 50, 98, 99, 100, 101, 500, 999, 1_001, 1_500, 5_000))
        return "[" * depth + "]" * depth if rng.random() < 0.5 else '{"a":' * depth + "1" + "}" * depth
    if kind in ("date", "timestamp", "string"):
        if (kind == "timestamp" and rng.random() < 0.3) or rng.random() < 0.05:
            return number(rng, kind)
        return quoted(rng, plain(rng, kind))
    if kind == "boolean":
        return rng.choice((*WORDS[:24], "true", "false", "true", "false"))
    if (kind.startswith("decimal") and rng.random() < 0.4) or rng.random() < 0.05:
        return quoted(rng, plain(rng, kind))
    return spoilt(rng, number(rng, kind))


def quoted(rng: Random, some: str) -> str:
    """A text in quotes: all of it escaped, or as little as may be, or a little less."""
    way = rng.random()
    if way < 0.15:
        data = some.encode("utf-16-be", "surrogatepass")
        return '"' + "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2)) + '"'
    if way < 0.2:
        return f'"{some}"'
    if way < 0.25:
        return json.dumps(some) + rng.choice(("", " ", "x", '"'))
    if way < 0.3:
        return json.dumps(some)[:-1] + rng.choice(("\\x", "\\u12", "\\/", "\\u0000", "\\ud83d", "\\ud83d\\ude00")) + '"'
    return json.dumps(some, ensure_ascii=rng.random() < 0.5 or not _is_whole(some))


def _is_whole(some: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in some)


@dataclass(frozen=True)
class Line:
    """A line of JSON, and one like it whose value is surely good."""

    data: bytes
    like: bytes


def json_line(rng: Random, kind: str) -> Line:
    """A line of JSON with a column v of a type, alone or with others that are declared, or are not."""
    value, sound = json_value(rng, kind), good(rng, kind)
    if kind.startswith("decimal") and value.startswith('"'):
        sound = f'"{sound}"'
    form = rng.choices(FORMS, [60, *[4] * (len(FORMS) - 1)])[0]
    line = form.replace("GOOD", sound).replace("VALUE", value).replace("\n", " ")
    like = form.replace("GOOD", sound).replace("VALUE", sound)
    data = line.encode("utf-8", "surrogatepass")
    if rng.random() < 0.02:
        at = rng.randrange(len(data))
        data = (
            data[:at] + rng.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0")) + data[at + 1 :]
        )
    return Line(data.replace(b"\n", b" "), like.encode("utf-8", "surrogatepass"))
