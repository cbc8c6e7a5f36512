"""Law: what a pattern gives are the matches and time-outs of the definition, in its order, on both implementations."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import event, given, strategies as st

from penstock.plan.operators.match import TIMEOUTS, Match, match
from penstock.plan.operators.pattern import Pattern, no_skip, past_last, pattern, to_first, to_last, to_next
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.all_matches import Condition, Event, Found, Row, Word, expected
from tests.properties.matching import ByColumn, ByRow
from tests.properties.profile import law

SIDE = Side("events", schema("team string, kind string, price long, bit long, at timestamp"), ("team",))
CASES = 5  # patterns of an example: ten thousand examples of both laws are a hundred thousand patterns

# A condition as it is written, and what it means; `{}` is the name of a step.
ALONE: dict[str | None, Condition] = {
    None: lambda row, match: True,
    "kind = 'a'": lambda row, match: row["kind"] == "a",
    "kind = 'b'": lambda row, match: row["kind"] == "b",
    "kind = 'c'": lambda row, match: row["kind"] == "c",
    "kind in ('a', 'b')": lambda row, match: row["kind"] in "ab",
    "kind in ('b', 'c')": lambda row, match: row["kind"] in "bc",
    "kind != 'a'": lambda row, match: row["kind"] != "a",
}
OF_TAKEN: dict[str, Callable[[str], Condition]] = {
    "price > {}.price": lambda name: lambda row, match: bool(match[name]) and row["price"] > match[name][-1]["price"],
    "price >= count({})": lambda name: lambda row, match: row["price"] >= len(match[name]),
    "price <= first({}.price) or kind = 'c'": lambda name: (
        lambda row, match: row["kind"] == "c" or (bool(match[name]) and row["price"] <= match[name][0]["price"])
    ),
}


@dataclass(frozen=True)
class Case:
    """A rule, what the condition of each step means, the events of each key, and how many come in a batch."""

    rule: Match
    means: dict[str, Condition]
    words: list[list[Event]]
    size: int


def condition(chance: random.Random, names: list[str]) -> tuple[Any, Condition]:
    """A condition in SQL or as a function of the user's, and what it means."""
    if names and chance.random() < 0.3:
        text, of = chance.choice(sorted(OF_TAKEN)), chance.choice(names)
        written, means = text.replace("{}", of), OF_TAKEN[text](of)
    else:
        written, means = chance.choice(list(ALONE.items()))
    return means if written is not None and chance.random() < 0.2 else written, means


def not_every(chance: random.Random, names: list[str]) -> tuple[Any, Condition]:
    """A condition that is written out, as a negated step needs it."""
    written, means = condition(chance, names)
    return (written, means) if written is not None else not_every(chance, names)


def any_pattern(chance: random.Random) -> tuple[Pattern, dict[str, Condition]]:
    """One to four steps: every way to follow, every number, greedy or not, with what may not come between them."""
    written, means = condition(chance, [])
    steps, meant, names = quantified(chance, pattern("s0", written)), {"s0": means}, ["s0"]
    for number in range(1, chance.choice([1, 2, 2, 3, 3, 4])):
        name, bar = f"s{number}", f"n{number}"
        if chance.random() < 0.25:
            written, meant[bar] = not_every(chance, names)
            steps = chance.choice([steps.without, steps.not_next])(bar, written)
        written, meant[name] = condition(chance, [*names, name])
        steps = chance.choice([steps.next, steps.then, steps.then, steps.then_any])(name, written)
        steps, names = quantified(chance, steps), [*names, name]
    if chance.random() < 0.2:
        written, meant["end"] = not_every(chance, names)
        steps = steps.without("end", written)
    return _allowed(steps), meant


def quantified(chance: random.Random, steps: Pattern) -> Pattern:
    """How often the last step comes."""
    steps = chance.choice([steps, steps.times(2), steps.times(1, 2), steps.times(2, 3), steps.one_or_more()])
    inner = [steps, steps.consecutive(), steps.allow_combinations(), steps.greedy(), steps.consecutive().greedy()]
    steps = chance.choice(inner)
    return chance.choice([steps, steps, steps.optional()])


def greedy_pattern(chance: random.Random) -> tuple[Pattern, dict[str, Condition]]:
    """Two to four steps, most of them greedy and optional, then one that must come or what may not."""
    letters, meant = list(ALONE.items()), {}
    written, meant["s0"] = chance.choice(letters)
    steps = loop(chance, pattern("s0", written), 0.25)
    for number in range(1, chance.choice([2, 3, 3, 4])):
        written, meant[f"s{number}"] = chance.choice(letters)
        steps = chance.choice([steps.then, steps.then, steps.next, steps.then_any])(f"s{number}", written)
        steps = loop(chance, steps, 0.7)
    if chance.random() < 0.2:
        written, meant["end"] = chance.choice(letters[1:])
        steps = steps.without("end", written)
    else:
        written, meant["last"] = chance.choice(letters)
        steps = chance.choice([steps.then, steps.next, steps.then_any])("last", written)
    return _allowed(steps), meant


def loop(chance: random.Random, steps: Pattern, optional: float) -> Pattern:
    """The last step, in most cases as a greedy loop."""
    many = [steps, steps.times(2), steps.times(1, 2), steps.times(2, 3), *3 * [steps.one_or_more()]]
    steps = chance.choice(many)
    steps = steps.consecutive() if chance.random() < 0.3 else steps
    steps = steps.optional() if chance.random() < optional else steps
    return steps.greedy() if chance.random() < 0.75 else steps


def _allowed(steps: Pattern) -> Pattern:
    """The pattern without what is refused: nothing that must come, and greedy steps that a match may end with."""
    first, *rest = steps.steps
    if all(step.may_lack for step in steps.taken):
        steps = replace(steps, steps=(replace(first, may_lack=False), *rest))
    if steps.bars[-1]:
        return steps
    ending = {step for number, step in enumerate(steps.taken) if len(steps.taken) in steps.reached(number)}
    return replace(steps, steps=tuple(replace(step, eager=False) if step in ending else step for step in steps.steps))


def case_of(chance: random.Random, drawn: tuple[Pattern, dict[str, Condition]]) -> Case:
    steps, means = drawn
    name = chance.choice([step.name for step in steps.taken])
    skips = [no_skip(), no_skip(), no_skip(), to_next(), past_last(), past_last(), to_first(name), to_last(name)]
    rule = match(
        steps.within(f"{chance.choice([3, 6, 100])} us"),
        output={step.name: f"sum({step.name}.bit)" for step in steps.taken},
        skip=chance.choice(skips),
        timeouts=True,
        limit=100_000,
    )
    rule.check([SIDE])
    words = [word_of(chance, team, chance.choice([3, 5, 6, 7])) for team in ("t", "u")]
    return Case(rule, means, words, chance.choice([1, 4, 100]))


def word_of(chance: random.Random, team: str, size: int) -> list[Event]:
    """The events of a key."""
    at, rows, letters = 0, [], chance.choice(["abc", "abcd", "aabc", "ab"])
    for number in range(size):
        at += chance.choice([0, 1, 1, 2])
        kind, price = chance.choice(letters), chance.randrange(4)
        rows.append({"team": team, "kind": kind, "price": price, "bit": 2**number, "at": at})
    return rows


def played(machine: Any, case: Case) -> dict[tuple[str, str], list[Found]]:
    """What a machine gives of each output and key, as the events and the steps that a row says."""
    playing, batches, watermark = machine(case.rule, SIDE), [], -(2**63)
    rows = sorted((row for word in case.words for row in word), key=lambda row: row["at"])
    records = [Record(row["at"], "s/0", number, row) for number, row in enumerate(rows)]
    for at in range(0, len(records), case.size):
        batch = records[at : at + case.size]
        batches.append(playing.step(batch, watermark, restart=True))
        watermark = batch[-1].time
    found: dict[tuple[str, str], list[Found]] = {}
    for batch in (*batches, playing.step([], MAX_TIME)):
        for key, texts in batch.rows.items():
            found.setdefault(key, []).extend(_found(case.rule, *eval(text)) for text in texts)
    return found


def _found(rule: Match, values: dict[str, Any], time: int) -> Found:
    taken = [(at, number) for number, step in enumerate(rule.pattern.taken) for at in range(7)
             if (values[step.name] or 0) >> at & 1]  # fmt: skip
    taken.sort()
    return Found(Row(tuple(at for at, _ in taken), tuple(step for _, step in taken)), time)


def check(machine: Any, case: Case) -> None:
    found = played(machine, case)
    for rows in case.words:
        word = Word(case.rule.pattern, rows, case.means)
        matches, timeouts = expected(word, case.rule.skip)
        key = repr([rows[0]["team"]])
        assert found.pop((MAIN, key), []) == matches, f"{case.rule} over {rows}"
        assert found.pop((TIMEOUTS, key), []) == timeouts, f"time-outs of {case.rule} over {rows}"
        event("no match" if not word.wholes else "some left out" if len(word.wholes) > len(matches) else "matches")
    assert not found


@pytest.mark.parametrize("machine", [ByRow, ByColumn])
@pytest.mark.parametrize("patterns", [any_pattern, greedy_pattern])
@law(30)
@given(seed=st.integers(0, 2**64 - 1))
def test_a_pattern_gives_every_match_that_there_is(machine: Any, patterns: Any, seed: int) -> None:
    # Of drawn steps and events most would be like one another, and their words short.
    chance = random.Random(seed)
    for _ in range(CASES):
        check(machine, case_of(chance, patterns(chance)))
