"""What is done with a pattern: what a match gives, where the search goes on, what is kept for how long."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.errors import DataError, PlanError, did_you_mean
from penstock.expressions.builder import Col, Node, type_of
from penstock.plan.operators.measures import Read, Ref, read, said, shown
from penstock.plan.operators.pattern import Pattern, Skip, Step, past_last
from penstock.plan.stages import MAIN, Operator, Side
from penstock.types.durations import Duration, not_negative, words
from penstock.types.schema import Column, Schema, checked

TIMEOUTS = "timeouts"
BOUNDS = ("match_start", "match_end")
LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Test:
    """A step's condition made ready: an expression over columns, a function, or None where every event fits.

    `plain`: it looks at the event alone, so it is asked once for each event, as the event arrives.
    """

    step: Step
    read: Read | None
    function: Callable[..., Any] | None
    plain: bool


@dataclass(frozen=True, slots=True)
class Match(Operator):
    """Finds a pattern among the events of each key, in order of event time."""

    pattern: Pattern
    output: tuple[tuple[str, Node], ...]
    skip: Skip
    timeouts: bool = False
    lateness: int = 0
    keep: Literal["forever"] | None = None
    limit: int = LIMIT

    def __str__(self) -> str:
        return f"{self.pattern}; {self.skip}"

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Refuses patterns that never end or mean nothing, and expressions that have no type."""
        _check_length(self)
        _check_end(self.pattern)
        _check_skip(self)
        self.tests(sides[0])
        self.outputs(sides)
        if self.pattern.length is None and not self.pattern.single:
            return ('partial matches are kept for ever (keep="forever"): the state grows with the keys',)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """The key, the measures, and when the match began and ended; time-outs have the same columns."""
        (side,) = sides
        measures = [Column(name, self._type(name, one, side)) for name, one in self.measures(side)]
        ends = [Column(name, "timestamp") for name in BOUNDS]
        made = checked((*side.key_schema.columns, *measures, *ends))
        return {MAIN: made, TIMEOUTS: made} if self.timeouts else {MAIN: made}

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Events until W has passed them, partial matches until `within` is over, matches until it is their turn."""
        wait = f"W - {words(self.lateness)}" if self.lateness else "W"
        said = [f"events, until {wait} has passed them, to be put in order"]
        if self.pattern.length is not None:
            said.append(f"partial matches, until {wait} is {words(self.pattern.length)} past their first event")
        elif not self.pattern.single:
            said.append("partial matches, for ever")
        waits = self.skip.kind != "no_skip" and not self.pattern.single
        if waits:
            said.append("matches, until each partial match that began earlier is given or over")
        counted = ", with matches that wait" if waits else ""
        return (*said, f"at most {self.limit:,} partial matches of a key{counted}, or the run stops")

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """The events that wait, and what decides what is stored of a partial match; what was passed stays passed."""
        output = ", ".join(f"{name} = {shown(node)}" for name, node in self.output)
        bound = {
            "pattern": str(self.pattern),
            "output": output,
            "skip": str(self.skip),
            "events": str(sides[0].schema),
            "lateness": words(self.lateness),
        }
        asked = {
            test.step.name: "the event" if test.plain else "the event and the match"
            for test in self.tests(sides[0])
            if test.function is not None
        }
        if asked:
            bound["functions"] = ", ".join(f"{name} of {what}" for name, what in asked.items())
        return bound

    def tests(self, side: Side) -> tuple[Test, ...]:
        """The conditions of all steps, in order."""
        names = [step.name for step in self.pattern.steps]
        made, known = [], []
        for step in self.pattern.steps:
            known += [] if step.negated else [step.name]
            made.append(_test(step, side.schema, names, known))
        return tuple(made)

    def measures(self, side: Side) -> tuple[tuple[str, Read], ...]:
        """The expressions of the output, over the key and what they say of the match."""
        names = [step.name for step in self.pattern.steps]
        taken = [step.name for step in self.pattern.taken]
        made = []
        for name, node in self.output:
            one = read(node, side.schema, names, taken, f"the output {name!r}")
            _check_said(name, one, side, taken)
            made.append((name, one))
        return tuple(made)

    def measured(self, side: Side) -> Schema:
        """The columns over which the measures are evaluated: the key, and each thing said of the match once."""
        refs = refs_of([one for _, one in self.measures(side)])
        held = [Column(ref.name, ref.type(side.schema, "output")) for ref in refs]
        return Schema((*side.key_schema.columns, *held))

    def _type(self, name: str, one: Read, side: Side) -> str:
        return type_of(one.node, one.schema(side.schema, f"the output {name!r}"), f"the output {name!r}")


def match(
    pattern: Pattern,
    *,
    output: Mapping[str, str | Col | Node] | None = None,
    skip: Skip | None = None,
    timeouts: bool = False,
    lateness: Duration = "0",
    keep: str | None = None,
    limit: int = LIMIT,
) -> Match:
    """The rule of `.match(...)`: a pattern and what is done with it."""
    if not isinstance(pattern, Pattern):
        raise PlanError(
            f"{pattern!r} is not a pattern",
            "a pattern says which events follow one another",
            'write ps.pattern("high", "price > 100").next("low", "price < high.price").within("5 minutes")',
        )
    if not isinstance(output, Mapping) or not all(isinstance(name, str) for name in output):
        raise PlanError(
            f"match was given output={output!r}",
            "output names the columns of a match, each with what it says of the events that were taken",
            'write output={"low": "low.price", "highs": "count(high)"}, or output={} for the key and the times alone',
        )
    if skip is not None and not isinstance(skip, Skip):
        raise PlanError(
            f"skip is {skip!r}",
            "skip says from where the search goes on after a match",
            "write skip=ps.past_last(), ps.to_next(), ps.no_skip(), or ps.to_last(name)",
        )
    if not isinstance(timeouts, bool):
        raise PlanError(
            f"timeouts is {timeouts!r}",
            "timeouts=True gives the partial matches that within has ended, as an output of their own",
            "write timeouts=True, or leave it out",
        )
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise PlanError(f"limit is {limit!r}", "limit is a whole number from 1 on", "write limit=1_000")
    if keep not in (None, "forever"):
        raise PlanError(f"keep is {keep!r}", 'there is one word for it: "forever"', 'write keep="forever"')
    nodes = tuple((name, said(one)) for name, one in output.items())
    forever: Literal["forever"] | None = "forever" if keep else None
    return Match(pattern, nodes, skip or past_last(), timeouts, not_negative(lateness, "lateness"), forever, limit)


def refs_of(reads: Sequence[Read | None]) -> tuple[Ref, ...]:
    """What expressions say of a match, each once, in order."""
    return tuple(dict.fromkeys(ref for one in reads if one is not None for ref in one.refs))


def too_many(rule: Match, key: tuple[Any, ...]) -> DataError:
    """The error for a key that has more partial matches than it may."""
    return DataError(
        f"the key {key!r} has more than {rule.limit:,} partial matches of: {rule.pattern}",
        "each event may begin one, and .then_any() and loops multiply them; none is dropped in silence",
        "narrow the first condition, shorten within, write .next() or .greedy(), or raise limit=",
    )


def unmeasurable(error: Exception) -> DataError:
    """The error for a measure that cannot be computed."""
    return DataError(
        f"the output of a match cannot be computed: {error}",
        "it is evaluated over the events of the match that would be given",
        'guard it, such as output={"share": "low.price / nullif(high.price, 0)"}',
    )


def _test(step: Step, schema: Schema, names: Sequence[str], known: Sequence[str]) -> Test:
    where = f"the condition of {step.name!r}"
    if step.condition is None:
        return Test(step, None, None, plain=True)
    if not isinstance(step.condition, Node):
        return Test(step, None, step.condition, plain=_parameters(step) == 1)
    one = read(step.condition, schema, names, known, where)
    found = type_of(one.node, one.schema(schema, where), where)
    if found != "boolean":
        raise PlanError(
            f"{where} gives a {found}: {shown(step.condition)}",
            "an event fits where the condition is true, so it must be a boolean",
            f"write a comparison, such as {shown(step.condition)} > 0",
        )
    return Test(step, one, None, plain=not one.refs)


def _parameters(step: Step) -> int:
    try:
        count = len(inspect.signature(step.condition).parameters)  # type: ignore[arg-type]
    except ValueError:
        count = 0
    if count not in (1, 2):
        raise PlanError(
            f"the condition of {step.name!r} takes {count} arguments",
            "a function is given the event, and if it wants it the match so far",
            "write lambda event: ... or lambda event, match: ...",
        )
    return count


def _check_length(rule: Match) -> None:
    asked = rule.pattern
    if asked.length is None and not asked.single and rule.keep is None:
        raise PlanError(
            f"a pattern that can match for ever: {asked}",
            "a match of more than one event waits for the next one, and nothing says how long",
            'write .within("5 minutes"), or say keep="forever"',
        )
    if asked.length is not None and rule.keep is not None:
        raise PlanError(
            'a pattern with within is asked to keep="forever"',
            "partial matches leave when within is over",
            "leave one of the two out",
        )
    if asked.length is None and rule.timeouts:
        raise PlanError(
            "time-outs of a pattern without within",
            "a time-out is a match that within has ended",
            'write .within("5 minutes")',
        )


def _check_end(asked: Pattern) -> None:
    last = asked.steps[-1]
    if last.negated and last.contiguity == "strict":
        raise PlanError(
            f"the pattern ends with .not_next({last.name!r})",
            "a match ends with an event, or when within is over",
            f'write .without({last.name!r}, ...).within("5 minutes")',
        )
    if last.negated and asked.length is None:
        raise PlanError(
            f"the pattern ends with .without({last.name!r}) and has no within",
            "such a match is whole when within is over, and not before",
            'write .within("5 minutes")',
        )
    if all(step.may_lack for step in asked.taken):
        raise PlanError(
            f"every step may be lacking: {asked}",
            "a match holds at least one event",
            "leave one .optional() out",
        )
    for number, step in enumerate(asked.taken):
        if step.eager and step.inner == "any":
            raise PlanError(
                f"the step {step.name!r} is greedy and allows combinations",
                "a greedy step takes every event that it can, and combinations leave out some that it could take",
                "leave out .greedy() or .allow_combinations()",
            )
        if step.eager and not asked.bars[-1] and len(asked.taken) in asked.reached(number):
            raise PlanError(
                f"the step {step.name!r} is greedy, and a match may end with it",
                "a match is given as soon as it is whole, so nothing says where such a step ends",
                'end it with a step that must come, as in .next("end")',
            )


def _check_skip(rule: Match) -> None:
    names = [step.name for step in rule.pattern.taken]
    if rule.skip.name is not None and rule.skip.name not in names:
        raise PlanError(
            f"skip={rule.skip} names a step that takes no event",
            f"the steps that do are: {', '.join(names)}",
            did_you_mean(rule.skip.name, names),
        )


def _check_said(name: str, one: Read, side: Side, taken: Sequence[str]) -> None:
    for column in sorted(one.columns - {ref.name for ref in one.refs} - set(side.keys)):
        side.schema.type_of(column, f"the output {name!r}")
        raise PlanError(
            f"the output {name!r} names the column {column!r} of no step",
            "a match has several events, and all of them have the key's columns alone in common",
            f"write {taken[-1]}.{column} or first({taken[0]}.{column})",
        )
