"""Enrichment: what each row is given, what is asked once, what is remembered until when; on both implementations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock.diagnostics.user_functions import message_of
from penstock.errors import DataError
from penstock.plan.operators.enrich import CACHE_ROWS, Enrich, enrich_rule
from penstock.plan.stages import Side
from penstock.testing import Script
from penstock.types.schema import schema
from tests.unit.engine.playing_stages import Played, player

COLUMNS = schema("user string, ip string, n long")
SIDE = Side("rows", COLUMNS, ())
FAST = {"timeout": "2 seconds", "retries": 0, "backoff": "1 millisecond"}


class Service:
    """Answers, and remembers what it was asked; `down` are questions it throws at."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.down: set[str] = set()
        self.version = 0

    async def __call__(self, row: dict[str, Any]) -> Any:
        self.asked.append(row)
        if row["ip"] in self.down:
            raise ConnectionError(f"nobody answers for {row['ip']}")
        return {"country": f"land of {row['ip']}", "risk": self.version}


def rule_of(function: Any, **changed: Any) -> Enrich:
    given = {"output": "country string, risk long", "on": "ip", "concurrency": 4, "give_up": "1 minute", "cache": None,
             "cache_rows": CACHE_ROWS, "on_error": "quarantine", **FAST, **changed}  # fmt: skip
    return enrich_rule(function, **given)


@pytest.fixture(params=["reference", "columnar"])
def play(request: pytest.FixtureRequest) -> Callable[..., Played]:
    """A rule over rows of a user, an ip and a number, on one of the implementations."""

    def made(function: Any, **changed: Any) -> Played:
        return player(request.param, rule_of(function, **changed), SIDE)

    return made


def test_each_row_has_its_answer_beside_it_in_the_order_of_the_rows(play: Any) -> None:
    played = play(Service())
    played.batch([(3, "ann", "b", 1), (1, "bob", "a", 2), (2, "ann", "b", 3)], watermark=2)
    assert played.rows() == [
        (3, {"user": "ann", "ip": "b", "n": 1, "country": "land of b", "risk": 0}),
        (1, {"user": "bob", "ip": "a", "n": 2, "country": "land of a", "risk": 0}),
        (2, {"user": "ann", "ip": "b", "n": 3, "country": "land of b", "risk": 0}),
    ]
    assert played.late == []


def test_what_is_equal_is_asked_once_a_batch_and_in_the_order_in_which_it_came(play: Any) -> None:
    service = Service()
    played = play(service, concurrency=1)
    played.batch([(1, "ann", "b", 1), (1, "bob", "a", 2), (1, "cid", "b", 3), (1, "ann", "c", 4)])
    assert service.asked == [{"ip": "b"}, {"ip": "a"}, {"ip": "c"}]
    played.batch([(2, "ann", "b", 1)])
    assert service.asked[3:] == [{"ip": "b"}]


def test_without_on_the_whole_row_is_the_question(play: Any) -> None:
    service = Service()
    played = play(service, on=None)
    played.batch([(1, "ann", "b", 1), (1, "ann", "b", 2), (1, "ann", "b", 1)])
    assert service.asked == [{"user": "ann", "ip": "b", "n": 1}, {"user": "ann", "ip": "b", "n": 2}]
    assert len(played.rows()) == 3


def test_null_is_a_question_like_any_other(play: Any) -> None:
    played = play(lambda row: {"country": str(row["ip"])}, cache="1 hour")
    played.batch([(1, "ann", None, 1), (1, "bob", "None", 2)])
    played.batch([(1, "ann", None, 1)])
    assert [row["country"] for _, row in played.rows()] == ["None", "None", "None"]
    assert played.held() == 2


@pytest.mark.parametrize("engine", ["reference", "columnar"])
def test_zeros_are_one_question_and_so_are_nans(engine: str) -> None:
    asked: list[Any] = []

    async def look(row: dict[str, Any]) -> dict[str, Any]:
        asked.append(repr(row["x"]))
        return {"country": repr(row["x"])}

    rule = rule_of(look, on="x", output="country string", cache="1 hour")
    played = player(engine, rule, Side("rows", schema("x double"), ()))
    played.batch([(1, 0.0), (1, -0.0), (1, float("nan")), (1, -float("nan"))])
    played.restart()
    played.batch([(1, -0.0), (1, float("nan"))])
    assert sorted(asked) == ["0.0", "nan"]


@pytest.mark.parametrize("engine", ["reference", "columnar"])
def test_a_function_sees_times_as_datetimes_and_may_give_them(engine: str) -> None:
    side = Side("rows", schema("at timestamp"), ())
    rule = rule_of(lambda row: {"then": row["at"].replace(year=2027)}, on="at", output="then timestamp")
    played = player(engine, rule, side)
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    played.batch([(1, int(moment.timestamp() * 1e6))])
    assert [row["then"] for _, row in played.rows()] == [int(moment.replace(year=2027).timestamp() * 1e6)]


def test_none_and_what_is_left_out_are_nulls(play: Any) -> None:
    played = play(lambda row: {"risk": 3} if row["ip"] == "a" else None)
    played.batch([(1, "ann", "a", 1), (1, "bob", "b", 2)])
    assert [(row["country"], row["risk"]) for _, row in played.rows()] == [(None, 3), (None, None)]
    assert played.bad == []


# No answer ------------------------------------------------------------------------------------------------------------


def test_rows_without_an_answer_are_quarantined_with_the_reason(play: Any) -> None:
    service = Service()
    service.down = {"b"}
    played = play(service)
    played.batch([(1, "ann", "a", 1), (1, "bob", "b", 2), (1, "cid", "b", 3), (1, "ann", "c", 4)])
    assert [row["n"] for _, row in played.rows()] == [1, 4]
    why = "ConnectionError: nobody answers for b"
    assert [(row, step, message_of(reason)) for row, step, reason in played.bad] == [
        ({"user": "bob", "ip": "b", "n": 2}, "enrich", why),
        ({"user": "cid", "ip": "b", "n": 3}, "enrich", why),
    ]


def test_or_have_nulls(play: Any) -> None:
    service = Service()
    service.down = {"b"}
    played = play(service, on_error="null")
    played.batch([(1, "ann", "a", 1), (1, "bob", "b", 2)])
    assert [(row["country"], row["risk"]) for _, row in played.rows()] == [("land of a", 0), (None, None)]
    assert played.bad == []


def test_or_stop_the_run(play: Any) -> None:
    service = Service()
    service.down = {"b"}
    played = play(service, on_error="fail")
    with pytest.raises(DataError, match=r"Service has no answer for {'ip': 'b'}: ConnectionError") as raised:
        played.batch([(1, "ann", "a", 1), (1, "bob", "b", 2)])
    assert "on_error" in raised.value.instead


WRONG = {
    "another type": ({"risk": "high"}, "gave column 'risk': 'high' is not an integer"),
    "too large": ({"risk": 2**63}, "does not fit into 64 bits"),
    "an unknown column": ({"county": "x"}, "the column 'county', which output= does not have; did you mean 'country'"),
    "no row": ([1], r"gave \[1\], which is not a row; give a dict, or None"),
    "text": ("DE", "gave 'DE', which is not a row"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_an_answer_of_another_shape_is_no_answer_and_is_not_asked_again(play: Any, case: str) -> None:
    calls = []
    answer, why = WRONG[case]

    def look(row: dict[str, Any]) -> Any:
        calls.append(row)
        return answer

    played = play(look, retries=3)
    played.batch([(1, "ann", "a", 1)])
    assert len(calls) == 1
    ((_, step, reason),) = played.bad
    assert step == "enrich"
    assert re.search(why, reason), reason


# Remembering ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_remembered_for_as_long_as_cache_says_by_the_clock_of_the_batch(play: Any) -> None:
    service = Service()
    played = play(service, cache="10 seconds")
    for version, now in enumerate((100, 105, 109, 110, 119, 120)):
        service.version = version
        played.batch([(1, "ann", "a", now)], now=now)
        played.restart()
    assert [row["risk"] for _, row in played.rows()] == [0, 0, 0, 3, 3, 5]
    assert len(service.asked) == 3


def test_what_has_run_out_leaves_without_being_asked_for(play: Any) -> None:
    played = play(Service(), cache="10 seconds")
    played.batch([(1, "ann", "a", 1), (1, "ann", "b", 1)], now=100)
    played.batch([(1, "ann", "c", 1)], now=105)
    assert played.held() == 3
    played.batch([], now=110)
    assert played.held() == 1
    played.batch([], now=115)
    assert played.held() == 0


def test_at_the_end_of_input_nothing_is_held(play: Any) -> None:
    played = play(Service(), cache="1 hour")
    played.batch([(1, "ann", "a", 1)])
    assert played.held() == 1
    played.batch([(1, "ann", "b", 1)], watermark=10**15)
    assert (played.held(), len(played.rows())) == (0, 2)


def test_of_too_many_the_oldest_leave(play: Any) -> None:
    service = Service()
    played = play(service, cache="1 hour", cache_rows=3)
    played.batch([(1, "ann", ip, 1) for ip in "ab"], now=1)
    played.batch([(1, "ann", ip, 1) for ip in "acd"], now=2)
    assert played.held() == 3
    del service.asked[:]
    played.batch([(1, "ann", ip, 1) for ip in "bcd"], now=3)
    assert service.asked == []
    played.batch([(1, "ann", "a", 1)], now=4)
    assert service.asked == [{"ip": "a"}]
    played.batch([(1, "ann", ip, 1) for ip in "wxyz"], now=5)
    assert played.held() == 3


def test_failures_are_not_remembered(play: Any) -> None:
    service = Service()
    service.down = {"a"}
    played = play(service, cache="1 hour", on_error="null")
    played.batch([(1, "ann", "a", 1)])
    assert played.held() == 0
    service.down = set()
    played.batch([(1, "ann", "a", 1)])
    assert [row["country"] for _, row in played.rows()] == [None, "land of a"]


def test_without_cache_nothing_is_held(play: Any) -> None:
    played = play(Service())
    played.batch([(1, "ann", "a", 1)])
    assert played.held() == 0


def test_a_long_run_holds_no_more_than_cache_and_cache_rows_allow(play: Any) -> None:
    played = play(Service(), cache="20 seconds", cache_rows=30)
    most = []
    for n in range(80):
        played.batch([(n, "ann", f"{n}-{i}", 1) for i in range(n % 4)], now=n)
        most.append(played.held())
    assert max(most) == 30
    assert max(most[40:]) <= max(most[:40])


# The plan -------------------------------------------------------------------------------------------------------------


def logins(**changed: Any) -> ps.Rows:
    events = ps.events("user string, ip string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    given = {"output": "country string, risk long", "on": "ip", **changed}
    return events.enrich(Service(), **given)


def test_the_key_of_a_stream_stays_and_windows_may_follow() -> None:
    events = ps.events("user string, ip string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    enriched = events.key_by("user").enrich(Service(), output="country string, risk long", on="ip")
    assert enriched.keys == ("user",)
    assert enriched.stage.entries[0].keys == ("user",)
    panes = enriched.window(ps.tumbling("5 minutes")).aggregate(places=ps.distinct("country"))
    script = Script(panes, "columnar")
    script.batch("user  ip  at\nann  a  12:00\nann  b  12:01\nbob  a  12:02")
    script.batch((), watermark="+inf")
    script.batch((), watermark="+inf")
    script.expect({"user": "ann", "places": 2}, {"user": "bob", "places": 1})


def test_rows_are_dealt_by_the_key_or_by_on_or_by_their_partition() -> None:
    assert logins().stage.entries[0].keys == ("ip",)
    assert logins(on=None).stage.entries[0].keys == ()


def test_the_plan_says_what_is_asked_and_what_is_held() -> None:
    said = logins(cache="1 hour", timeout="2 seconds", retries=2).explain()
    assert "Service of each different (ip), asked 100 at a time, each for 2 seconds and at most 3 times" in said
    assert "keeps:  what a batch was answered, in a file" in said
    assert "keeps:  answers for 1 hour of processing time, of each shard the last 100,000" in said
    assert logins().stage.operator.binding(logins().stage.sides) == {
        "operator": "enrich", "asks": "ip string", "answers": "country string, risk long",
    }  # fmt: skip


def test_a_plain_function_is_warned_of_for_its_calls_cannot_be_ended() -> None:
    events = ps.events("ip string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    plain = events.enrich(lambda row: None, output="country string")
    assert plain.check() == ("<lambda> is not async: it runs in threads, and a call that hangs keeps its thread",)
    assert logins().check() == ()


async def several(row: dict[str, Any]) -> Any:
    yield row


REFUSED = {
    "no output": ({"output": None}, "does not say the columns of an answer"),
    "a column that is there": ({"output": "user string"}, "have a column 'user' already"),
    "an unknown column": ({"on": "iip"}, "enrich names the column 'iip'"),
    "columns that are none": ({"on": 5}, "was given 5, which is not the name of a column"),
    "no columns": ({"on": []}, "was given \\[\\], which is not the name of a column"),
    "no function": ({"function": "look_up"}, "'look_up', which is not a function"),
    "a class": ({"function": Service}, "which is not a function"),
    "a generator": ({"function": several}, "several yields rows"),
    "no parameter": ({"function": lambda: None}, "<lambda> cannot be called with a row"),
    "two parameters": ({"function": lambda row, key: None}, "<lambda> cannot be called with a row"),
    "on_error": ({"on_error": "drop"}, "on_error is 'drop'"),
    "no concurrency": ({"concurrency": 0}, "concurrency is 0"),
    "negative retries": ({"retries": -1}, "retries is -1"),
    "retries that are no number": ({"retries": True}, "retries is True"),
    "a timeout of nothing": ({"timeout": "0"}, "timeout is '0'"),
    "a cache of nothing": ({"cache": "0"}, "cache is '0'"),
    "a bare number": ({"timeout": 2}, "timeout is 2, which is not a duration"),
    "cache_rows": ({"cache_rows": 0}, "cache_rows is 0"),
    "give_up": ({"give_up": "-1 s"}, "give_up is '-1 s'"),
    "backoff": ({"backoff": "-1 s"}, "backoff is '-1 s'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_right_is_refused(case: str) -> None:
    changed, why = REFUSED[case]
    events = ps.events("user string, ip string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    given = {"function": Service(), "output": "country string, risk long", "on": "ip", **changed}
    with pytest.raises(ps.PlanError, match=why) as raised:
        events.enrich(given.pop("function"), **given)
    assert raised.value.why
    assert raised.value.instead


@pytest.mark.parametrize("function", [lambda row, again=3: row, lambda *rows: rows[0], {"a": {}}.get, dict.copy])
def test_what_can_be_called_with_a_row_alone_is_taken(function: Any) -> None:
    assert rule_of(function).function is function


def test_the_longest_that_a_question_can_take_is_known() -> None:
    asking = rule_of(Service(), timeout="2 seconds", retries=3, backoff="4 seconds", give_up="1 second").asking
    assert asking.longest == (4 * 2 + 4 + 8 + 10) * 1_000_000
    assert asking.patience == asking.longest
