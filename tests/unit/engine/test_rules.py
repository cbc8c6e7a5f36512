"""Which rules does a function see: those of its batch, on every shard the same, changed and withdrawn while it runs."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.runtime.broadcast_rules import Rules
from penstock.testing import Script


class Limits(ps.KeyedFunction):
    """An alert for each limit that an amount is above, which names the rule and the batch it came with."""

    output = "user string, rule string, since long"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        for name, rule in context.rules.items():
            if event["amount"] > rule["most"]:
                context.emit(user=key, rule=name, since=context.rules.batch(name))


def payments() -> ps.Stream:
    return ps.events("user string, amount long, at timestamp", name="payments").event_time(
        "at", watermark=ps.bounded("1 minute")
    )


def limited(ordered: bool = False, **said: Any) -> ps.Rows:
    limits = ps.events("id string, most long, gone boolean", name="limits")
    given = {"rules": limits, "rule_key": "id", "deleted": "gone", **said}
    return payments().key_by("user").process(Limits(), ordered=ordered, **given)


def paid(amount: int, at: str = "12:00", user: str = "ann") -> dict[str, Any]:
    return {"user": user, "amount": amount, "at": at}


def limit(name: str | None, most: int | None = None, gone: bool | None = None) -> dict[str, Any]:
    return {"@source": "limits", "id": name, "most": most, "gone": gone}


def test_the_example_of_the_documentation(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([paid(500), limit("big", 100)])
    script.expect_rows("user  rule  since\nann  big  0")
    script.batch([paid(500), limit("big", 1000), limit("huge", 400)])
    script.expect_rows("user  rule  since\nann  huge  1")
    script.restart()
    script.batch([limit("huge", gone=True)])
    script.batch([paid(5000)])
    script.expect_rows("user  rule  since\nann  big  1")


def test_all_rules_of_a_batch_hold_for_all_of_its_events_whatever_came_first(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([paid(2, "12:00"), limit("a", 1), paid(3, "12:01"), limit("a", 2), paid(3, "11:00", "bob")])
    script.expect_rows("user  rule  since\nann  a  0\nbob  a  0")


def test_in_order_an_event_meets_the_rules_of_the_batch_in_which_it_is_handled(engine: str) -> None:
    script = Script(limited(ordered=True), engine)
    script.batch([paid(2, "12:00"), limit("a", 1)])
    script.batch([paid(0, "12:05"), limit("a", 9), limit("b", 1)])
    script.batch()
    script.expect_rows("user  rule  since\nann  b  1")


def test_one_that_is_withdrawn_twice_or_was_never_there_is_no_matter(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([limit("a", 1), limit("nobody", gone=True)])
    script.batch([limit("a", gone=True)])
    script.batch([limit("a", gone=True), paid(5)])
    script.expect_rows()
    assert script.run.open_windows() == 0
    script.batch([limit("a", 2, gone=False), paid(5)])
    script.expect_rows("user  rule  since\nann  a  3")


def test_null_is_an_id_like_any_other(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([limit(None, 1), paid(5)])
    script.expect_rows({"user": "ann", "rule": None, "since": 0})
    script.batch([limit(None, gone=True), paid(5)])
    script.expect_rows()


def test_one_said_again_as_it_was_keeps_its_batch(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([limit("a", 1)])
    script.batch([limit("a", gone=True), limit("a", 1), paid(5)])
    script.expect_rows("user  rule  since\nann  a  0")


def test_a_rule_that_an_event_cannot_be_held_against_quarantines_the_event(engine: str) -> None:
    script = Script(limited(), engine)
    script.batch([limit("a"), paid(5)])
    script.expect_rows()
    script.expect_quarantined({"user": "ann", "step": "process"})


def test_rows_of_rules_that_cannot_be_used_are_quarantined_once(engine: str) -> None:
    timed = ps.events("id string, most long, since timestamp", name="limits").event_time(
        "since", watermark=ps.bounded("1 minute")
    )
    script = Script(limited(rules=timed, deleted=None), engine)
    script.batch([{"@source": "limits", "id": "a", "most": 1, "since": None}, paid(5)])
    script.expect_rows()
    script.expect_quarantined({"id": "a"})
    assert script.counts.quarantined == 1


def test_the_watermark_does_not_wait_for_rules_and_none_of_them_is_late(engine: str) -> None:
    timed = ps.events("id string, most long, since timestamp", name="limits").event_time(
        "since", watermark=ps.bounded("1 minute", idle=None)
    )
    script = Script(limited(rules=timed, deleted=None), engine, partitions=["payments/0", "limits/0"])
    script.batch([paid(1, "12:00")], now="12:00")
    assert script.laggard == "payments/0"
    script.batch([paid(1, "12:10")], now="12:10")
    script.batch([{"@source": "limits", "id": "old", "most": 1, "since": "08:00"}, paid(7, "12:10")], now="12:10")
    script.expect_rows("user  rule  since\nann  old  2")
    assert list(script.partitions()) == ["payments/0"]


class Meddling(ps.KeyedFunction):
    """Tries to write what it may only read."""

    output = "user string"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.rules["a"]["most"] = 0


class Curious(ps.KeyedFunction):
    """Asks for rules where there are none."""

    output = "user string"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.emit(user=str(len(context.rules)))


def test_rules_are_read_only(engine: str) -> None:
    limits = ps.events("id string, most long", name="limits")
    script = Script(payments().key_by("user").process(Meddling(), rules=limits, rule_key="id"), engine)
    script.batch([{"@source": "limits", "id": "a", "most": 1}, paid(5)])
    script.expect_quarantined({"user": "ann"})
    with pytest.raises(TypeError):
        Rules()["a"] = {}  # type: ignore[index]


def test_rules_that_were_not_given_are_asked_for_in_vain(engine: str) -> None:
    script = Script(payments().key_by("user").process(Curious()), engine)
    script.batch([paid(5)])
    assert "write .process(…, rules=…)" in script.quarantined[0].reason


def test_an_id_may_be_several_columns_and_there_is_one_nan() -> None:
    rules = Rules([(("a", float("nan")), {"most": 1}, 4)])
    assert rules["a", float("nan")] == {"most": 1}
    assert rules.batch(("a", float("nan"))) == 4
    assert repr(rules) == "{('a', nan): {'most': 1}}"
    assert Rules([(float("nan"), {}, 0)])[float("nan")] == {}


@pytest.mark.parametrize(
    ("said", "what", "instead"),
    [
        ({"rule_key": None}, "rules and no rule_key", 'rule_key="id"'),
        ({"rules": None, "deleted": None}, "rule_key and no rules", "rules=limits"),
        ({"rules": None, "rule_key": None}, "deleted and no rules", "rules=limits"),
        ({"rule_key": "idd"}, "'idd'", "did you mean 'id'?"),
        ({"deleted": "most"}, "names a long", "booleans"),
        ({"rule_key": 5}, "was given 5, which is not the name of a column", "such as 'id'"),
        ({"rule_key": [5]}, "was given 5, which is not the name of a column", "in quotes"),
        ({"rules": 7}, "7", "a stream or a ps.table"),
    ],
)
def test_what_cannot_be_right_is_refused(said: dict[str, Any], what: str, instead: str) -> None:
    with pytest.raises(ps.PlanError) as error:
        limited(**said)
    assert what in error.value.what
    assert instead in error.value.instead


def test_it_says_what_it_keeps_and_what_binds() -> None:
    said = limited().explain()
    assert "keeps:  of each id the last rule, on every shard, until its gone is true" in said
    assert "to:     every shard" in said
    assert "does not wait for it" in said
    bound = limited().stage.operator.binding(limited().stage.sides)
    assert bound["rules"] == "id string, most long, gone boolean"
    assert limited().check() == ()
    assert "no rule is ever withdrawn" in limited(deleted=None).check()[0]
