"""Patterns and streams at random."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import assume, strategies as st

from penstock.errors import PlanError
from penstock.plan.operators.match import Match, match
from penstock.plan.operators.pattern import Pattern, no_skip, past_last, pattern, to_first, to_last, to_next
from penstock.reference.aggregates import Record
from penstock.types.timestamps import MAX_TIME
from tests.properties.matching import COLUMNS, Batch, side

PLAIN = (
    None, "price > 3", "price <= 3", "kind = 'a'", "kind != 'a'", "price > 1 and kind != 'c'", "12 / price > 2",
    "x > 0.5", "price is not null", "price > 1", "price < 6", "price != 3",
)  # fmt: skip
OF_BEFORE = (
    "price < last({}.price)", "price >= {}.price", "count({}) < 2", "sum({}.price) + price < 9",
    "avg({}.price) < price", "price > max({}.price) or kind = 'b'", "price / ({}.price - 2) > 1",
    "coalesce(first({}.kind), 'z') != kind", "x > min({}.x)", "price % 2 = count({}.price)",
    "lower(concat(kind, {}.kind)) like '%a%'", "at > {}.at", "price in (1, {}.price)", "not {}.price = price",
    "case when price > 2 then {}.price else price end > 2", "least(x, {}.x) < 1.0", "sum({}.x) > 1.0",
)  # fmt: skip


def _more(event: dict[str, Any], match: dict[str, list[dict[str, Any]]]) -> bool:
    """A user's function of the event and the match so far."""
    return (event["price"] or 0) >= sum(one["price"] or 0 for taken in match.values() for one in taken) // 2


def _odd(event: dict[str, Any]) -> bool:
    """A user's function of the event, which throws where there is no price."""
    return event["price"] % 2 == 1


@st.composite
def conditions(draw: st.DrawFn, own: str, before: list[str], first: bool) -> Any:
    choice = draw(st.integers(0, 11))
    if choice == 0:
        return _odd
    if choice == 1:
        return _more
    if choice <= 7 and before:
        return draw(st.sampled_from(OF_BEFORE)).replace("{}", draw(st.sampled_from([before[0], *before, own])))
    return draw(st.sampled_from(PLAIN if first else PLAIN[1:]))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A pattern of one to four steps, with negated ones between them."""
    made: Pattern | None = None
    taken: list[str] = []
    for n in range(draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4]))):
        name = f"s{n}"
        asked = draw(conditions(name, taken, first=n == 0))
        if made is None:
            made = pattern(name, asked)
        else:
            if draw(st.integers(0, 4)) == 0:
                bar = draw(st.sampled_from(["price = 4", "kind = 'c'", *(c for c in OF_BEFORE[:4])]))
                bar = bar.replace("{}", taken[-1])
                made = draw(st.sampled_from([made.without, made.not_next]))(f"n{n}", bar)
            made = draw(st.sampled_from([made.next, made.then, made.then, made.then_any]))(name, asked)
        made = _looped(draw, made)
        taken.append(name)
    assert made is not None
    if draw(st.integers(0, 5)) == 0:
        made = made.without("end", draw(st.sampled_from(["price = 4", "kind = 'c'"])))
    length = draw(st.sampled_from([3, 6, 10, 20, None]))
    return made if length is None else made.within(f"{length} us")


def _looped(draw: st.DrawFn, made: Pattern) -> Pattern:
    shape = draw(st.integers(0, 7))
    if shape == 0:
        made = made.times(2)
    elif shape == 1:
        made = made.times(*draw(st.sampled_from([(1, 2), (2, 3), (1, 3)])))
    elif shape in (2, 3):
        made = made.one_or_more()
    if 0 <= shape <= 3:
        made = draw(st.sampled_from([made, made, made.consecutive(), made.allow_combinations(), made.greedy()]))
    return made.optional() if draw(st.integers(0, 6)) == 0 else made


@st.composite
def rules(draw: st.DrawFn, limit: int = 60, lateness: tuple[int, ...] = (0, 0, 2)) -> Match:
    """A pattern with a skip strategy, measures, and time-outs where they can be."""
    asked = draw(patterns())
    names = [step.name for step in asked.taken]
    some, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    skip = draw(st.sampled_from([no_skip(), to_next(), past_last(), to_first(some), to_last(some)]))
    output = {
        "top": f"max({some}.price)", "low": f"{other}.price", "n": f"count({some}) + count({other}.price)",
        "total": f"sum({some}.price)", "mean": f"avg({other}.x)", "kinds": f"first({some}.kind)",
        "least": f"min({other}.x)", "when": f"first({other}.at)",
    }  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(sorted(output)), unique=True, max_size=4))
    rule = match(
        asked, output={name: output[name] for name in chosen}, skip=skip, limit=limit,
        timeouts=asked.length is not None and draw(st.booleans()), keep=None if asked.length else "forever",
        lateness=f"{draw(st.sampled_from(lateness))} us",
    )  # fmt: skip
    try:
        rule.check([side()])
    except PlanError:
        assume(False)
    return rule


rows = st.fixed_dictionaries({
    "team": st.sampled_from(["a", "a", "a", "a", "b", None]),
    "price": st.sampled_from([0, 1, 2, 3, 4, 5, 6, 9, None, 3, 5]),
    "kind": st.sampled_from(["a", "a", "b", "c", None]),
    "x": st.sampled_from([0.5, 1.5, -0.0, 0.0, float("nan"), None, 2.25]),
})  # fmt: skip


@st.composite
def streams(draw: st.DrawFn, most: int = 20) -> list[Record]:
    """Events of two partitions, nearly in order of time."""
    records: list[Record] = []
    offsets: Counter[str] = Counter()
    time = 0
    for row in draw(st.lists(rows, min_size=draw(st.sampled_from([0, most // 2])), max_size=most)):
        time = max(0, time + draw(st.sampled_from([0, 0, 1, 1, 2, 3, -1, -3])))
        partition = draw(st.sampled_from(["s/0", "s/1"]))
        records.append(Record(time, partition, offsets[partition], _ordered({**row, "at": time})))
        offsets[partition] += 1
    return records


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS.names}


@st.composite
def batches(draw: st.DrawFn, most: int = 20) -> list[Batch]:
    """A stream cut into batches, with a W that goes on at random and ends at +inf."""
    records = draw(streams(most))
    made, at, watermark = [], 0, -(2**63)
    while at < len(records):
        size = draw(st.integers(0, 6))
        part = sorted(records[at : at + size], key=lambda record: (record.partition, record.offset))
        made.append(Batch(tuple(part), watermark, draw(st.booleans())))
        newest = max((record.time for record in records[: at + size]), default=0)
        watermark = max(watermark, newest - draw(st.integers(-2, 4)))
        at += size
    made.append(Batch((), watermark, True))
    return [*made, Batch((), MAX_TIME, False)]


@st.composite
def even(draw: st.DrawFn, most: int = 30) -> list[Batch]:
    """A stream of evenly mixed events, in which partial matches overtake one another, under a W that is close."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    made, watermark, offset = [], -(2**63), 0
    for n in range(chance.randrange(4, 12)):
        part = []
        for _ in range(chance.randrange(most // 4)):
            time = max(0, 3 * n + chance.randrange(-1, 3))
            row = {"team": chance.choice("aaaaab"), "price": chance.choice([*range(8), None]),
                   "kind": chance.choice("abc"), "x": chance.choice([0.5, 1.5, 2.25]), "at": time}  # fmt: skip
            part.append(Record(time, "s/0", offset, row))
            offset += 1
        made.append(Batch(tuple(part), watermark, chance.random() < 0.4))
        watermark = max(watermark, 3 * n + chance.randrange(-4, 2))
    return [*made, Batch((), MAX_TIME, False)]


OVERTAKING = (
    pattern("s0", "price > 2").then("s1", "price < s0.price"),
    pattern("s0", "price > 1").then("s1", "price < s0.price").then("s2", "price > s1.price and kind != s0.kind"),
    pattern("s0").times(1, 3).then("s1", "price < s0.price"),
    pattern("s0", "kind = 'a'").then("s1", "price > s0.price").one_or_more().then("s2", "price = s0.price"),
    pattern("s0", "kind != 'c'").without("n", "price = s0.price").then_any("s1", "price < s0.price"),
    pattern("s0", "price > 2").then("s1", "price < s0.price").optional().without("end", "kind = 'c'"),
    pattern("s0", "kind = 'a'").next("s1", "price > 1").optional().then("s2", "price < s0.price"),
)


@st.composite
def overtaking(draw: st.DrawFn) -> Match:
    """A pattern whose later matches may be whole before earlier ones, so that they wait."""
    asked, name = draw(st.sampled_from(OVERTAKING)), draw(st.sampled_from(["s0", "s1"]))
    skip = draw(st.sampled_from([to_next(), past_last(), past_last(), to_first(name), to_last(name)]))
    output = {"top": "max(s0.price)", "n": "count(s0) + count(s1)", "when": "s1.at"}
    return match(asked.within(f"{draw(st.sampled_from([4, 8, 15]))} us"), output=output, skip=skip,
                 timeouts=draw(st.booleans()), lateness=f"{draw(st.sampled_from([0, 0, 0, 2]))} us")  # fmt: skip
