"""Does a maker text stand for what the same call in Python makes, and is everything else refused?"""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import CaseError, PlanError
from penstock.testing.case_expressions import MAKERS, make


@pytest.mark.parametrize(
    ("text", "what", "made"),
    [
        ("global_window()", "window", ps.global_window()),
        ('ps.tumbling("10 us", offset="3 us")', "window", ps.tumbling("10 us", offset="3 us")),
        ('calendar("day", zone="Europe/Berlin")', "window", ps.calendar("day", zone="Europe/Berlin")),
        ('repeat(count(2)) | after("1 minute")', "trigger", ps.repeat(ps.count(2)) | ps.after("1 minute")),
        ("count(2) & count(3)", "trigger", ps.count(2) & ps.count(3)),
        ("count(2).then(count(3)).until(ps.never())", "trigger", ps.count(2).then(ps.count(3)).until(ps.never())),
        (
            'at_watermark(early=every("1 minute"), late=count(1))',
            "trigger",
            ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1)),
        ),
        ('when("n > 3", once=True)', "trigger", ps.when("n > 3", once=True)),
        ('bounded("2 minutes", idle=None)', "watermark", ps.bounded("2 minutes", idle=None)),
        ('top_k("value", 3, by="price")', "aggregate", ps.top_k("value", 3, by="price")),
        ('count("value")', "aggregate", ps.count("value")),
    ],
)
def test_a_maker_text_makes_what_python_makes(text: str, what: str, made: object) -> None:
    assert make(text, what) == made


@pytest.mark.parametrize(
    ("text", "what", "said"),
    [
        ('tumblin("1 minute")', "window", "did you mean 'tumbling'?"),
        ("count(1)", "window", "there is no window 'count'"),
        ("count(1).than(count(2))", "trigger", "did you mean 'then'?"),
        ("count(1) + count(2)", "trigger", "is not a maker"),
        ("count(1) | 3", "trigger", "'3' is not a trigger"),
        ("[1, -2].then(count(1))", "trigger", "is not a trigger"),
        ("__import__('os')", "trigger", "there is no trigger '__import__'"),
        ("ps.__dict__", "trigger", "is not a maker"),
        ("count(*[1])", "trigger", "count is given * or **"),
        ("count(**{})", "trigger", "count is given * or **"),
        ("count(a=1)", "trigger", "unexpected keyword argument"),
        ("lambda: 1", "trigger", "is not a maker"),
        ("count(1", "trigger", "cannot be read"),
        ("3", "aggregate", "'3' is not an aggregate"),
        ("count(3)", "aggregate", "is not an aggregate"),
        ("fold('value', 1)", "aggregate", "there is no aggregate 'fold'"),
    ],
)
def test_a_text_that_is_no_maker_is_refused(text: str, what: str, said: str) -> None:
    with pytest.raises(CaseError) as refused:
        make(text, what)
    assert said in str(refused.value)


def test_a_maker_refuses_what_it_refuses_in_python() -> None:
    with pytest.raises(PlanError, match="can never be counted to"):
        make("count(-1)", "trigger")


def test_every_maker_without_functions_can_be_written() -> None:
    named = {name for _, makers in MAKERS.values() for name in makers}
    made_of = (
        "penstock.model.aggregates",
        "penstock.model.watermarks",
        "penstock.model.triggers",
        "penstock.model.windows",
        "penstock.api.overloads",
    )
    public = {name for name, value in vars(ps).items() if getattr(value, "__module__", "") in made_of
              and name.islower() and callable(value)}  # fmt: skip
    assert public - named == {"custom", "fold"}
    assert named - public == {"validity"}
