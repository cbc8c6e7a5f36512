"""Durations are words or timedeltas, read in one place; and every doctest of the package runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from datetime import timedelta

import pytest

import penstock
from penstock.errors import PlanError
from penstock.types.durations import microseconds, not_negative, positive, words


@pytest.mark.parametrize(("text", "length"), [
    ("5 minutes", 300_000_000), ("5m", 300_000_000), ("1 hour 30 minutes", 5_400_000_000), ("1h30m", 5_400_000_000),
    ("1.5 seconds", 1_500_000), ("250 ms", 250_000), ("7 us", 7), ("7 µs", 7), ("2 weeks", 1_209_600_000_000),
    ("1 Day", 86_400_000_000), ("0", 0), ("-3 s", -3_000_000), ("  1   minute ", 60_000_000),
])  # fmt: skip
def test_a_duration_is_a_number_and_a_unit_once_or_more(text, length):
    assert microseconds(text) == length


def test_a_duration_may_be_a_timedelta():
    assert microseconds(timedelta(minutes=5)) == microseconds("5 minutes")


@pytest.mark.parametrize("length", [0, 1, 1_000, 90_000_000, 86_400_000_000 * 40, -61_000_000, 3_723_004_005])
def test_words_are_read_back(length):
    assert microseconds(words(length)) == length


@pytest.mark.parametrize("text", ["", "5", "minutes", "5 minuets", "5 minutes and", "1e3 s", "nan s", "5 months"])
def test_what_cannot_be_read_is_refused_with_a_hint(text):
    with pytest.raises(PlanError) as error:
        microseconds(text)
    assert error.value.instead


def test_a_refusal_of_many_digits_is_short():
    with pytest.raises(PlanError) as error:
        microseconds("9" * 5000 + " days")
    assert len(error.value.what) < 100


@pytest.mark.parametrize("value", [None, True, float("nan"), [5], b"5 s"], ids=repr)
def test_what_is_neither_words_nor_a_number_is_refused_with_an_example(value):
    with pytest.raises(PlanError, match="is not a duration") as error:
        microseconds(value)
    assert error.value.instead == 'write words, such as "5 minutes", or a timedelta'


def test_a_bare_number_is_refused_because_it_has_no_unit():
    with pytest.raises(PlanError, match="does not say its unit"):
        microseconds(300)


def test_a_unit_that_is_misspelt_is_guessed():
    with pytest.raises(PlanError, match="did you mean 'hours'"):
        microseconds("2 huors")


@pytest.mark.parametrize("huge", [
    "1000001 days", timedelta.max, timedelta.min, "9" * 5000 + " days", "9" * 400 + ".5 days", "-" + "9" * 400 + ".5 s",
], ids=lambda huge: str(huge)[:12])  # fmt: skip
def test_a_duration_longer_than_a_million_days_is_refused(huge):
    with pytest.raises(PlanError, match="too long"):
        microseconds(huge)


def test_zero_and_negative_durations_are_refused_where_they_make_no_sense():
    assert not_negative("0", "lateness") == 0
    for read, text in ((positive, "0"), (positive, "-1 s"), (not_negative, "-1 s")):
        with pytest.raises(PlanError, match="size"):
            read(text, "size")


def modules():
    found = pkgutil.walk_packages(penstock.__path__, "penstock.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_run(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"needs {error.name}")
    assert doctest.testmod(module).failed == 0
