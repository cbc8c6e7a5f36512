"""Law: what a pattern gives are all rows of events that may be a match, less what the skip strategy leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, event, given, strategies as st

from penstock.errors import PlanError
from penstock.instant import MAX_TIME
from penstock.match import Match, match
from penstock.pattern import Pattern, no_skip, past_last, pattern, to_first, to_last, to_next
from penstock.reference.accumulate import Record
from penstock.schema import schema
from penstock.stage import Side
from tests.laws.all_matches import Condition, Event, Found, Searched, refused
from tests.laws.matching import ByColumn, ByRow
from tests.laws.profile import law

SIDE = Side("events", schema("team string, kind string, price long, bit long, at timestamp"), ("team",))


# A condition as it is written, and what it means; `{}` is the name of a step.
ALONE: dict[str | None, Condition] = {
    None: lambda one, match: True,
    "kind = 'a'": lambda one, match: one["kind"] == "a",
    "kind = 'b'": lambda one, match: one["kind"] == "b",
    "kind in ('a', 'b')": lambda one, match: one["kind"] in "ab",
    "kind != 'a'": lambda one, match: one["kind"] != "a",
}
OF_TAKEN: dict[str, Callable[[str], Condition]] = {
    "price > {}.price": lambda name: lambda one, match: bool(match[name]) and one["price"] > match[name][-1]["price"],
    "price >= count({})": lambda name: lambda one, match: one["price"] >= len(match[name]),
    "price <= first({}.price) or kind = 'c'": lambda name: (
        lambda one, match: one["kind"] == "c" or (bool(match[name]) and one["price"] <= match[name][0]["price"])
    ),
}


@dataclass(frozen=True)
class Asked:
    """A rule, and what the condition of each step means."""

    rule: Match
    means: dict[str, Condition]


@st.composite
def condition(draw: st.DrawFn, names: list[str]) -> tuple[Any, Condition]:
    """A condition in SQL or as a function of the user's, and what it means."""
    if names and draw(st.integers(0, 2)) == 0:
        text, of = draw(st.sampled_from(sorted(OF_TAKEN))), draw(st.sampled_from(names))
        written, means = text.replace("{}", of), OF_TAKEN[text](of)
    else:
        written, means = draw(st.sampled_from(sorted(ALONE.items(), key=str)))
    return means if written is not None and draw(st.integers(0, 3)) == 0 else written, means


@st.composite
def patterns(draw: st.DrawFn) -> tuple[Pattern, dict[str, Condition]]:
    """One to three steps: every way to follow, every number, greedy or not, with what may not come between them."""
    made: Pattern | None = None
    means: dict[str, Condition] = {}
    names: list[str] = []

    def said(step: str, before: list[str]) -> Any:
        written, means[step] = draw(condition(before).filter(lambda one: step[0] == "s" or one[0] is not None))
        return written

    for number in range(draw(st.sampled_from([1, 2, 2, 3, 3]))):
        name = f"s{number}"
        if made is None:
            made = pattern(name, said(name, []))
        else:
            if draw(st.integers(0, 3)) == 0:
                bar = draw(st.sampled_from([made.without, made.not_next]))
                made = bar(f"n{number}", said(f"n{number}", names))
            follow = draw(st.sampled_from([made.next, made.then, made.then_any]))
            made = follow(name, said(name, [*names, name]))
        names.append(name)
        made = draw(quantified(made))
    assert made is not None
    if draw(st.integers(0, 4)) == 0:
        made = made.without("end", said("end", names))
    return made.within(f"{draw(st.sampled_from([3, 6, 100]))} us"), means


@st.composite
def quantified(draw: st.DrawFn, made: Pattern) -> Pattern:
    """How often the last step comes."""
    made = draw(st.sampled_from([made, made.times(2), made.times(1, 2), made.times(2, 3), made.one_or_more()]))
    made = draw(st.sampled_from([made, made.consecutive(), made.allow_combinations(), made.greedy(), made]))
    if made.steps[-1].eager:
        made = draw(st.sampled_from([made, made.consecutive()]))
    return draw(st.sampled_from([made, made, made.optional()]))


@st.composite
def rules(draw: st.DrawFn) -> Asked:
    asked, means = draw(patterns())
    name = draw(st.sampled_from([step.name for step in asked.taken]))
    skip = draw(st.sampled_from([no_skip(), no_skip(), to_next(), past_last(), to_first(name), to_last(name)]))
    output = {step.name: f"sum({step.name}.bit)" for step in asked.taken}
    rule = match(asked, output=output, skip=skip, timeouts=skip.kind == "no_skip", limit=100_000)
    try:
        rule.check([SIDE])
    except PlanError:
        assume(False)
    return Asked(rule, means)


events = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([0, 1, 1, 2])), max_size=8)


def play(machine: Any, rule: Match, rows: list[Event], size: int) -> dict[str, list[Found]]:
    """What a machine gives, in the order in which it gives it, as the events and the steps that a row says."""
    played, found, watermark = machine(rule, SIDE), {"rows": [], "timeouts": []}, -(2**63)
    records = [Record(row["at"], "s/0", number, row) for number, row in enumerate(rows)]
    given = []
    for at in range(0, len(records), size):
        given.append(played.step(records[at : at + size], watermark, restart=True))
        watermark = records[at : at + size][-1].time
    for one in (*given, played.step([], MAX_TIME)):
        for (output, _), texts in one.rows.items():
            for text in texts:
                values, time = eval(text)
                taken = [(at, number) for number, step in enumerate(rule.pattern.taken) for at in range(len(rows))
                         if (values[step.name] or 0) >> at & 1]  # fmt: skip
                taken.sort()
                found[output].append(Found(tuple(at for at, _ in taken), tuple(step for _, step in taken), time))
    return found


@pytest.mark.parametrize("machine", [ByRow, ByColumn])
@law(200)
@given(asked=rules(), told=events, size=st.sampled_from([1, 3, 100]))
def test_a_pattern_gives_every_match_that_there_is(machine: Any, asked: Asked, told: list[Any], size: int) -> None:
    rule, rows, at = asked.rule, [], 0
    for number, (kind, price, later) in enumerate(told):
        at += later
        rows.append({"team": "t", "kind": kind, "price": price, "bit": 2**number, "at": at})
    searched = Searched(rule.pattern, rows, asked.means)
    every, found = searched.matches(), play(machine, rule, rows, size)
    event("no match" if not every else "matches")
    if rule.skip.kind == "no_skip":
        assert sorted(found["rows"], key=repr) == sorted(every, key=repr)
        assert sorted(found["timeouts"], key=repr) == sorted(searched.timeouts(), key=repr)
    else:
        assert refused(found["rows"], every, rule.skip, rule.pattern) is None
