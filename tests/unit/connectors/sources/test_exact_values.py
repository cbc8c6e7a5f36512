"""Values of text are what the text says, or they are quarantined: decimals of any length, and times in any form."""

from __future__ import annotations

import io
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, strategies as st

from penstock.connectors.formats.csv import csv_pieces
from penstock.connectors.formats.json_lines import json_pieces
from penstock.connectors.formats.json_messages import json_values
from penstock.connectors.formats.message_bytes import Values
from penstock.types.schema import schema
from tests.properties.profile import law

READERS = ("a file of JSON", "JSON of Kafka", "a file of CSV")
TORN = {"a file of JSON": b'{"torn', "JSON of Kafka": b'{"torn', "a file of CSV": b"torn,,,"}


def column(reader, kind, texts, beside=()):
    """What a reader makes of texts in a column: a value, or the reason for there being none."""
    asked = schema(f"c {kind}")
    if reader == "a file of CSV":
        lines = [text.strip('"').encode() for text in texts]
        pieces = csv_pieces(io.BytesIO(b"\n".join([*lines, *beside])), asked, "f", False, 0)
        places = list(range(len(lines)))
    else:
        lines = [b'{"c": %s}' % text.encode() for text in texts]
        if reader == "JSON of Kafka":
            pieces, places = json_values(Values.of([*lines, *beside]), asked), list(range(len(lines)))
        else:
            pieces = json_pieces(io.BytesIO(b"\n".join([*lines, *beside])), asked, "f", 0)
            places = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])]).tolist()
    found = {}
    for piece in pieces:
        found |= dict(zip(piece.offsets.tolist(), piece.rows.column("c").to_pylist(), strict=True))
        found |= {bad.offset: f"bad: {bad.reason}" for bad in piece.undecoded}
    return [found[place] for place in places]


def fitting(text, precision, scale):
    """The number that a text says if it fits, from its digits alone; None where it does not."""
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    while digits and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if digits and (-exponent > scale or len(digits) + exponent + scale > precision):
        return None
    return number


EXACT = [
    ("decimal(38,10)", "81619784583895256565792947939", None),
    ("decimal(38,10)", "8161978458389525656579294793", Decimal("8161978458389525656579294793")),
    ("decimal(10,2)", "0.46491352992373159581966262665859311671691", None),
    ("decimal(38,18)", "123456789012345678901", None),
    ("decimal(38,18)", "12345678901234567890", Decimal("12345678901234567890")),
    ("decimal(38,38)", "0." + "9" * 38, Decimal("0." + "9" * 38)),
    ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("decimal(38,0)", "1" + "0" * 38, None),
    ("decimal(10,2)", "-0.00", Decimal("0.00")),
    ("decimal(10,2)", "1." + "5" + "0" * 60, Decimal("1.50")),
]
EXPONENTS = [
    ("decimal(38,10)", "1e30", None),
    ("decimal(38,10)", "1e27", Decimal(10**27)),
    ("decimal(10,2)", "1e-2", Decimal("0.01")),
    ("decimal(10,2)", "1e-3", None),
    ("decimal(10,2)", "1e-999999999", None),
    ("decimal(10,2)", "1e999999999", None),
    ("decimal(10,2)", "1e1000000000000000000", None),
    ("decimal(10,2)", "0e-999999999", Decimal(0)),
    ("decimal(10,2)", '"1\\u0065-999999999"', None),
    ("decimal(10,2)", '"1e-999999999"', None),
    ("decimal(10,2)", '"1e2"', Decimal(100)),
]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("kind", "text", "value"), EXACT + EXPONENTS)
def test_a_decimal_is_exact_or_quarantined(reader, kind, text, value, beside):
    if reader == "a file of CSV" and (kind, text, value) in EXPONENTS:
        value = None  # a number in CSV is plain digits
    for texts in ([text], ["1", text, "0.5"] * 3):
        (found, *_) = column(reader, kind, texts, [TORN[reader]] if beside else [])[len(texts) // 9 :]
        if value is None:
            assert str(found).startswith("bad: "), found
            assert "column 'c': " in found
        else:
            assert found == value


@pytest.mark.parametrize("reader", READERS)
def test_the_reason_says_how_many_digits_are_too_many(reader):
    (why,) = column(reader, "decimal(38,18)", ["123456789012345678901"])
    assert "does not fit in decimal(38,18): 21 digits before the point, where it has 20" in why
    (why,) = column(reader, "decimal(10,2)", ["0.125"])
    assert "does not fit in decimal(10,2): it has more than 2 digits after the point" in why


DIGITS = st.integers(1, 45).flatmap(lambda count: st.text("0123456789", min_size=count, max_size=count))
NUMBERS = st.builds(lambda sign, whole, part: f"{sign}{int(whole)}.{part}", st.sampled_from(["", "-"]), DIGITS, DIGITS)
KINDS = st.integers(1, 38).flatmap(lambda precision: st.tuples(st.just(precision), st.integers(0, precision)))


@law(150)
@given(st.sampled_from(READERS), KINDS, st.lists(NUMBERS, min_size=1, max_size=3))
def test_every_decimal_is_exact_or_quarantined(reader, sizes, texts):
    precision, scale = sizes
    for text, found in zip(texts, column(reader, f"decimal({precision},{scale})", texts), strict=True):
        expected = fitting(text, precision, scale)
        assert str(found).startswith("bad: ") if expected is None else found == expected


@pytest.mark.parametrize("reader", ["a file of JSON", "JSON of Kafka"])
@pytest.mark.parametrize("text", ["1_000", "١٢", " 1", "1 ", "0x10", "NaN", "Infinity", "", "1e", "--1"])
def test_a_text_is_a_decimal_only_if_it_is_written_as_one(reader, text):
    (why,) = column(reader, "decimal(10,2)", [f'"{text}"'])
    assert why.startswith("bad: ")
