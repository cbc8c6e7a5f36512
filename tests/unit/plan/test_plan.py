"""The plan: frozen, comparable, hashable, printable; and what explain() answers."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from pathlib import Path

import pytest

import penstock as ps
from penstock.api.windowed import Panes
from penstock.expressions.builder import expression
from penstock.expressions.inference import CASTS, FUNCTIONS
from penstock.expressions.parser import _INFIX, _PREFIXED


def scores(watermark="2 minutes", trigger=None, window=None, lateness="1 hour"):
    return (
        ps.events("team string, points long, at timestamp")
        .where("points > 0")
        .event_time("at", watermark=ps.bounded(watermark))
        .with_columns(double="points * 2")
        .key_by("team")
        .window(window or ps.tumbling("5 minutes"), lateness=lateness)
        .trigger(ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1)) if trigger is None else trigger)
        .accumulating()
        .aggregate(points=ps.sum("points"), plays=ps.rows(where="points > 9"))
    )


def test_a_plan_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores().plan.lateness = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores().plan.window.size = 0


def test_plans_that_ask_for_the_same_are_equal_and_hash_alike():
    assert scores().plan == scores().plan
    assert hash(scores().plan) == hash(scores().plan)
    assert scores("120 seconds").plan == scores("2 minutes").plan


@pytest.mark.parametrize("other", [
    scores("3 minutes"), scores(trigger=ps.count(1)), scores(window=ps.session("5 minutes")), scores(lateness="2 h"),
])  # fmt: skip
def test_plans_that_ask_for_something_else_are_not(other):
    assert other.plan != scores().plan


def test_a_plan_can_be_copied_and_pickled():
    plan = scores().plan
    assert copy.deepcopy(plan) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_every_step_returns_a_new_stream():
    stream = ps.events("at timestamp, v long")
    narrowed = stream.where("v > 0")
    assert stream.inputs[0].before == ()
    assert narrowed.inputs[0].before != ()


@pytest.mark.parametrize("window", [
    ps.tumbling("5 minutes", offset="1 minute"), ps.sliding("1 hour", every="5 minutes"), ps.session("10 minutes"),
    ps.calendar("week", zone="Europe/Berlin"), ps.event_pairs("1 minute"), ps.global_window(),
], ids=str)  # fmt: skip
def test_windows_are_values(window):
    assert window == copy.deepcopy(window)
    assert len({window, copy.deepcopy(window)}) == 1


def test_triggers_are_values():
    assert ps.count(1) | ps.every("1 minute") == ps.count(1) | ps.every("60 seconds")
    assert len({ps.when("n > 1"), ps.when(ps.col("n") > 1)}) == 1


def test_explain_answers_what_where_when_and_how():
    assert scores().explain() == "\n".join([
        "source: events (team string, points long, at timestamp)",
        "  where points > 0",
        "  event time: at; watermark: newest event time less 2 minutes",
        "    a partition silent for 1 minute steps aside; when all are silent the watermark holds; "
        "an event more than 1 hour ahead of the processing clock is quarantined",
        "  with_columns double = points * 2",
        "what:   points = sum(points), plays = rows() where points > 9",
        "by:     team",
        "where:  tumbling windows of 5 minutes, corrected for 1 hour after completion",
        "when:   when the watermark passes the end, before that every 1 minute, after that once 1 record is new",
        "how:    accumulating",
        "before the shuffle: one row per key and window",
        "keeps:  points, plays so far, for each key and window, until W is at its end and 1 hour more",
    ])  # fmt: skip


def test_one_record_is_one_and_more_are_many():
    assert str(ps.count(1)) == "once 1 record is new"
    assert str(ps.count(2)) == "once 2 records are new"


SQL = (
    (Path(__file__).parents[3] / "docs" / "api.md")
    .read_text("utf-8")
    .partition("## Expressions")[2]
    .partition("\n## ")[0]
)


def documented(heading):
    """The rows of the table below a heading: the code in the first cell, and that in the others."""
    table = SQL.partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for line in table.splitlines()[2:]]
    return {row[0].strip(" `"): re.findall(r"`([^`]+)`", " ".join(row[1:])) for row in cells}


def test_every_function_is_documented_and_no_other():
    found = documented("Function")
    assert {name: samples[-1] for name, samples in found.items()} == {
        name: sample for name, (_, _, _, sample) in FUNCTIONS.items()
    }


def test_every_operator_is_documented_and_no_other():
    found = documented("Operator")
    named = {part.replace("\\", "") for name in found for part in name.split("` `")}
    assert named == (_INFIX.keys() - {"is"}) | {"is null", "case", "cast"}
    for samples in found.values():
        assert expression(samples[-1].replace("\\", "")) is not None


def test_every_cast_is_documented_and_no_other():
    assert {target: set(sources) for target, sources in documented("Cast to").items()} == {
        target: set(sources) for target, sources in CASTS.items()
    }


def test_every_typed_constant_is_documented_and_no_other():
    assert {kind: samples[-1] for kind, samples in documented("Constant").items()} == {
        kind: sample for kind, (_, sample) in _PREFIXED.items()
    }


def test_printing_panes_explains_them():
    assert str(scores()) == scores().explain()


@pytest.mark.parametrize(("window", "said"), [
    (ps.tumbling("1 hour"), "one row per key and window"), (ps.sliding("1 hour", every="1 minute"), "key and slice"),
    (ps.session("1 minute"), "one row per key and burst"), (ps.event_pairs("1 minute"), "key and event time"),
    (ps.custom(lambda t: [(t, t + 1)], dict), "one row per key and assigned window"),
], ids=str)  # fmt: skip
def test_explain_says_what_combines_before_the_shuffle(window, said):
    (line,) = [line for line in scores(window=window).explain().splitlines() if line.startswith("before the shuffle")]
    assert said in line


def kept(window, lateness="0", mode=None, keys=("team",), trigger=None, bounded=False, **aggregates):
    """What explain() says of windows that they keep."""
    stream = ps.events("team string, points long, at timestamp", bounded=bounded).key_by(*keys)
    windowed = stream.event_time("at", watermark=ps.ascending()).window(window, lateness=lateness)
    windowed = windowed if trigger is None else windowed.trigger(trigger)
    windowed = windowed if mode is None else getattr(windowed, mode)()
    lines = windowed.aggregate(**(aggregates or {"plays": ps.rows()})).explain().splitlines()
    return [line.removeprefix("keeps:  ") for line in lines if line.startswith("keeps:")]


HOUR = "1 hour"
SO_FAR = "plays so far, for each key and window, until W is"
NEXT = "the last pane, for each key and window, until then: the next one withdraws it"
JOINED = "the last pane, for each key and window, until then: a window that it becomes part of withdraws it"
AFTER = "plays of the events themselves, for each key and event time, until W is past the end of the window that begins"


@pytest.mark.parametrize(("window", "asked", "said"), [
    (ps.tumbling("5 minutes"), {}, [f"{SO_FAR} at its end"]),
    (ps.tumbling("5 minutes"), {"lateness": HOUR, "mode": "retracting"},
     [f"{SO_FAR} at its end and 1 hour more", NEXT]),
    (ps.tumbling("5 minutes"), {"keys": ()}, ["plays so far, for each window, until W is at its end"]),
    (ps.calendar("day"), {"lateness": HOUR, "mode": "discarding"},
     ["what is new of plays, for each key and window, until W is at its end and 1 hour more"]),
    (ps.sliding(HOUR, every="1 minute"), {},
     ["plays so far, for each key and slice, until W is at the end of the last window that it is part of"]),
    (ps.sliding(HOUR, every="1 minute"), {"trigger": ps.at_expiry() & ps.when("plays > 1"), "lateness": HOUR},
     [f"{SO_FAR} at its end and 1 hour more"]),
    (ps.session("10 minutes"), {}, [f"{SO_FAR} more than 10 minutes past its last record"]),
    (ps.session("10 minutes"), {"lateness": HOUR, "mode": "accumulating"},
     [f"{SO_FAR} more than 1 hour 10 minutes past its last record", JOINED]),
    (ps.session("10 minutes"), {"lateness": HOUR, "mode": "discarding"},
     ["what is new of plays, for each key and window, until W is more than 1 hour 10 minutes past its last record",
      JOINED.replace("the last pane", "the sum of its panes")]),
    (ps.session("10 minutes"), {"lateness": HOUR, "mode": "retracting"},
     [f"{SO_FAR} more than 1 hour 10 minutes past its last record", NEXT]),
    (ps.event_pairs("1 minute"), {}, [f"{SO_FAR} past its end", f"{AFTER} right after it"]),
    (ps.event_pairs("1 minute"), {"lateness": HOUR, "mode": "retracting"},
     [f"{SO_FAR} past its end and 1 hour more", f"{AFTER} right after it and 1 hour more", NEXT]),
    (ps.custom(lambda t: [(t, t + 1)]), {}, [f"{SO_FAR} at its end"]),
    (ps.custom(lambda t: [(t, t + 1)], dict), {"trigger": ps.count(2), "mode": "accumulating"},
     [f"{SO_FAR} at its end", JOINED]),
    (ps.global_window(), {"trigger": ps.every("1 minute"), "mode": "retracting"},
     ["plays so far, for each key, until the input ends", NEXT.replace(" and window", "")]),
    (ps.global_window(), {"keys": (), "bounded": True}, ["plays so far, until the input ends"]),
    (ps.tumbling("5 minutes"), {"teams": ps.distinct("team")},
     ["teams so far, for each key and window, until W is at its end", "every different value of teams, until then"]),
])  # fmt: skip
def test_explain_says_what_windows_keep_and_when_they_let_go(window, asked, said):
    assert kept(window, **asked) == said


def test_explain_says_that_windows_over_withdrawals_keep_values():
    early = scores(trigger=ps.repeat(ps.count(1))).plan
    counts = Panes(dataclasses.replace(early, mode="retracting")).stream.window(ps.tumbling("1 hour"))
    said = counts.retracting().aggregate(most=ps.max("points"), teams=ps.rows()).explain()
    assert "keeps:  every value of most, until the window expires: one may be withdrawn" in said


def test_explain_says_what_runs_in_python():
    panes = (
        ps.events("at timestamp, v long").event_time("at", watermark=ps.ascending())
        .window(ps.custom(lambda t: [(t, t + 1)])).aggregate(d=ps.approx_distinct("v"))
    )  # fmt: skip
    python = [line for line in panes.explain().splitlines() if line.startswith("in Python")]
    assert [line.partition(": ")[2] for line in python] == ["d (approx_distinct)", "assign, per event time"]


def test_explain_of_one_pane_a_window_needs_no_mode():
    stream = ps.events("at timestamp", bounded=True).processing_time()
    said = stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()).explain()
    assert "one pane a window, so no mode is needed" in said
    assert "by:     all rows together" in said
    assert "processing time: now of the batch; nothing is late" in said
    assert "no corrections after completion" in said
    assert ", bounded" in said


@pytest.mark.parametrize("trigger", [
    ps.count(3), ps.after("1 minute"), ps.every("1 minute"), ps.when("points > 3"), ps.when("points > 3", once=True),
    ps.at_expiry(), ps.never(), ps.count(1) | ps.count(2), ps.count(1) & ps.count(2), ps.count(1).then(ps.count(2)),
    ps.count(1).until(ps.count(2)), ps.repeat(ps.count(1)), ps.at_watermark(),
], ids=str)  # fmt: skip
def test_every_trigger_can_be_said_in_words(trigger):
    assert str(trigger) in scores(trigger=trigger).explain()
    assert "0x" not in str(trigger)


@pytest.mark.parametrize(("rule", "said"), [
    (ps.percentile(0.99, "1 s", "1 h"), "the 0.99 quantile of the last 100,000 delays, at least 1 second and at"),
    (ps.from_column("at"), "what the column at says"), (ps.punctuated("points = 0"), "rows where points = 0"),
    (ps.by_hand(max_skew=None), "set by hand"), (ps.ascending(idle=None), "waits for a silent partition for ever"),
])  # fmt: skip
def test_every_watermark_rule_can_be_said_in_words(rule, said):
    stream = ps.events("at timestamp, points long").event_time("at", watermark=rule)
    assert said in stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()).explain()
