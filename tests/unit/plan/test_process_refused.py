"""Keyed functions that cannot be right are refused, in three parts; calls that may not be are put in quarantine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.errors import PlanError
from penstock.plan.operators.process import KeyedFunction, Process, items, mapping, process_rule, value
from penstock.plan.stages import Side
from penstock.types.schema import schema
from tests.unit.engine.playing_stages import player

SIDE = Side("events", schema("user string, n long"), ("user",))


def made(**body: Any) -> KeyedFunction:
    """A function of a class with these attributes."""
    body = {"output": "n long", "on_event": lambda self, event, key, context: None, **body}
    made: KeyedFunction = type("Mine", (KeyedFunction,), body)()
    return made


class SetsItself(KeyedFunction):
    """Puts state into itself when there is no key."""

    output = "n long"
    total = value("long")

    def __init__(self) -> None:
        self.total = 5

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        pass


class Hides(SetsItself):
    """Has a method where its base has a field."""

    def __init__(self) -> None:
        pass

    def total(self) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize(
    ("build", "what", "instead"),
    [
        (lambda: process_rule(SetsItself), "process was given the class SetsItself", "write .process(SetsItself())"),
        (lambda: process_rule(len), "which is not a keyed function", "inherits from ps.KeyedFunction"),
        (lambda: process_rule(made(), ordered="yes"), "ordered is 'yes'", "write ordered=True"),
        (lambda: process_rule(made(on_event=KeyedFunction.on_event)), "Mine has no on_event", "write def on_event"),
        (lambda: process_rule(made(on_timer=value("long"))), "hides KeyedFunction.on_timer", "another name"),
        (lambda: process_rule(Hides()), "Hides.total hides a field of state", "another name"),
        (lambda: process_rule(SetsItself()), "SetsItself sets its field 'total' when it is made", "default="),
        (lambda: Process(made(output="")).check((SIDE,)), "Mine does not say the columns of its output", "output ="),
        (lambda: Process(made(output="n lnog")).check((SIDE,)), "there is no type 'lnog'", "did you mean 'long'?"),
        (lambda: Process(made(sides={"rows": "n long"})).check((SIDE,)), "cannot be called 'rows'", "another name"),
        (lambda: Process(made(sides={"x": ""})).check((SIDE,)), "does not say the columns of its sides['x']", "write"),
        (lambda: Process(made()).check((Side("e", SIDE.schema, ()),)), "that has no key", '.key_by("user").process('),
        (lambda: value("lnog"), "there is no type 'lnog'", "did you mean 'long'?"),
        (lambda: value(None), "None is not the name of a type", 'write it in quotes: "long"'),
        (lambda: items(int), "<class 'int'> is not the name of a type", 'write it in quotes: "long"'),
        (lambda: mapping(5, "long"), "5 is not the name of a type", 'write it in quotes: "long"'),
        (lambda: items("array<long>"), "columns of type array<long> are not supported", "carry it as a string"),
        (lambda: mapping("string", "list"), "there is no type 'list'", "known:"),
        (lambda: value("long", default="x"), "the default 'x' is no long", 'ps.value("long")'),
        (lambda: value("long", ttl="0"), "ttl is '0', which is not longer than nothing", 'ttl="1 minute"'),
        (lambda: value("long", ttl="1 hour", ttl_by="wall"), "ttl_by is 'wall'", 'ttl_by="processing"'),
    ],
)
def test_what_cannot_be_right_is_refused(build: Callable[[], object], what: str, instead: str) -> None:
    with pytest.raises(PlanError) as caught:
        build()
    assert what in caught.value.what
    assert caught.value.why
    assert instead in caught.value.instead


@pytest.mark.parametrize("engine", ["reference", "columnar"])
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda self, c: setattr(self, "other", 1), "Mine set self.other: it is not a field, and nothing else lasts; "
         "declare other = ps.value(…) in the class"),
        (lambda self, c: delattr(self, "other"), "Mine set self.other: it is not a field"),
        (lambda self, c: setattr(self, "total", 2**70), "self.total was given int: "),
        (lambda self, c: setattr(self, "total", None), "self.total was given None: it has a default"),
        (lambda self, c: self.log.append(3), "self.log was given int: 3 is not text; give it a string"),
        (lambda self, c: self.log.__setitem__(slice(0, 1), []), "a part of self.log was assigned: only an item or"),
        (lambda self, c: self.seen.__setitem__(3, 4), "a key of self.seen was given int: 3 is not text"),
        (lambda self, c: self.seen["no"], "KeyError: 'no'"),
        (lambda self, c: c.emit(m=1), "emit gave the column 'm': its columns are: n; give one of these"),
        (lambda self, c: c.emit(n="x"), "emit gave the column 'n': 'x' is not an integer; give a value of its type"),
        (lambda self, c: c.emit(5), "emit was given 5: it is not a row; give a dict, or the columns by name"),
        (lambda self, c: c.emit_to("resets", n=1), "emit_to was given 'resets', which is not an output"),
        (lambda self, c: c.timer("1 minute"), "the function set a timer: it has no on_timer to be called"),
    ],
)  # fmt: skip
def test_what_a_call_may_not_do_quarantines_its_row(engine: str, call: Callable[..., Any], reason: str) -> None:
    function = made(
        total=value("long", default=0), log=items("string"), seen=mapping("string", "long"),
        on_event=lambda self, event, key, context: call(self, context), output="n long",
    )  # fmt: skip
    run = player(engine, Process(function), SIDE)
    run.batch([(1, "a", 1)])
    ((_, step, why),) = run.bad
    assert step == "process"
    assert why.startswith(reason)
    assert "\n" not in why
    assert run.held() == 0


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda c: c.timer(5), "a timer was set for 5: it is neither a moment nor a length of time; give a datetime"),
        (lambda c: c.timer("5 minuets"), "a timer '5 minuets' has the unknown unit 'minuets'"),
        (lambda c: c.timer(timedelta(days=-(10**6))), "a timer was set for a time outside the years 1 to 9999"),
        (lambda c: c.timer("1 minute", kind="wall"), "a timer of the kind 'wall': timers wait for event time or"),
        (lambda c: c.timer("1 minute", name=7), "a timer was named 7: 7 is not text; name it by text"),
    ],
)
def test_timers_that_cannot_be_set_quarantine_the_row(call: Callable[..., Any], reason: str) -> None:
    function = made(
        on_event=lambda self, event, key, context: call(context), on_timer=lambda self, timer, key, context: None
    )
    run = player("columnar", Process(function), SIDE)
    run.batch([(1, "a", 1)])
    assert [why.startswith(reason) for _, _, why in run.bad] == [True], run.bad


def test_what_is_held_is_said_and_what_has_no_ttl_is_warned_of() -> None:
    rule = Process(
        made(
            total=value("long"), log=items("string", ttl="1 hour"), on_timer=lambda self, timer, key, context: None,
            seen=mapping("string", "date", ttl="1 day", ttl_by="processing"),
        ),
        ordered=True,
    )  # fmt: skip
    assert rule.holds((SIDE,)) == (
        "log: a list of string for each key, let go 1 hour after it was last written, by event time",
        "seen: a map of string to date for each key, let go 1 day after it was last written, by processing time",
        "total: a long for each key, until the function clears it",
        "timers of each key, until they fire or are cancelled",
        "rows, until W has passed them, to be in order of event time",
    )
    assert rule.check((SIDE,)) == (
        "total of Mine has no ttl: it is kept for every key until the function clears it",
    )  # fmt: skip


def test_fields_key_and_order_bind_a_checkpoint_and_how_long_entries_last_does_not() -> None:
    def bound(**body: Any) -> dict[str, str]:
        return Process(made(**body)).binding((SIDE,))

    assert bound(total=value("long", ttl="1 hour")) == bound(total=value("long", ttl="2 hours"))
    assert bound(total=value("long", ttl="1 hour")) != bound(total=value("long"))
    assert bound(total=value("long")) != bound(total=value("double"))
    assert bound(total=value("long")) != bound(sum=value("long"))
    ordered = Process(made(), ordered=True).binding((SIDE,))
    assert ordered["rows"] == "user string, n long"
    assert ordered["ordered"] == "true"
    assert Process(made()).binding((SIDE,))["key"] == "user string"
