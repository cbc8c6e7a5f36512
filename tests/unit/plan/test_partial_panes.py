"""Pieces of panes through stages of rows: what is made of them is what the whole would give, or it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Script
from tests.unit.plan.test_retractions import ENGINES, counted, refused, row, source

Make = Callable[[ps.Stream], Any]


class Everyone(ps.KeyedFunction):
    """Gives what it is given."""

    output = "user string, n long"
    rules_seen = ps.value("long", default=0, ttl="1 hour")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.emit(user=event["user"], n=event["n"])


def pieces() -> ps.Stream:
    return counted("discarding", n=ps.rows(), points=ps.sum("points"), low=ps.min("points")).stream.select(
        "user", "n", "points", "low", "window_start", "window_end"
    )


def towns(columns: str = "user string, town string") -> ps.Stream:
    return source(columns, "towns", "since")


def looked_up(rows: dict[str, Any]) -> dict[str, Any]:
    return {"town": f"of {rows['user']}"}


REFUSED: dict[str, Make] = {
    "top": lambda it: it.key_by("user").top(1, by="window_start"),
    "match": lambda it: it.key_by("user").match(ps.pattern("big", "n > 1").within("1 hour"), output={"n": "big.n"}),
    "dedup": lambda it: it.dedup("user", within="1 hour"),
    "join": lambda it: it.join(towns("n long, town string"), on="n", between=("0", "1 minute")),
    "with pieces": lambda it: it.join(it.select("user", m="n"), on="user", between=("0", "1 minute")),
    "table": lambda it: towns().join_table(it, on="user"),
    "versions": lambda it: towns().temporal_join(it, on="user"),
    "key_by('n')": lambda it: it.join_table(towns("n long, town string"), on="n"),
    "process": lambda it: towns().key_by("user").process(Everyone(), rules=it, rule_key="user"),
    "by a piece": lambda it: it.key_by("points").process(Everyone()),
    "after enrich": lambda it: it.enrich(looked_up, output="town string", on="user").key_by("user").top(1, by="n"),
    "after a join": lambda it: it.join_table(towns(), on="user").key_by("town").top(1, by="n"),
    "after the right side of a join": lambda it: towns().join(it, on="user", between=("0", "1 hour")).dedup(
        "user", within="1 hour"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_stage_that_would_take_each_piece_for_a_row_is_refused(name: str) -> None:
    wrong = refused(lambda: REFUSED[name](pieces()))
    assert "over pieces of panes" in wrong.what or "with pieces of panes" in wrong.what
    assert ".retracting()" in wrong.instead or "once" in wrong.instead


@pytest.mark.parametrize("name", ["top", "match", "dedup", "table", "versions"])
def test_windows_that_show_once_give_no_pieces(name: str) -> None:
    once = source().key_by("user").window(ps.tumbling("1 minute")).discarding().aggregate(n=ps.rows()).stream
    assert REFUSED[name](once)


def enriched(it: ps.Stream) -> ps.Stream:
    return it.enrich(looked_up, output="town string", on="user")


def joined(it: ps.Stream, how: str = "left") -> ps.Stream:
    return it.join(towns(), on="user", between=("-1 hour", "0"), how=how)


TAKEN: dict[str, Make] = {
    "enrich": enriched,
    "join": joined,
    "right side": lambda it: towns().join(it, on="user", between=("0", "1 hour")),
    "semi": lambda it: joined(it, "semi").with_columns(town="user"),
    "table": lambda it: it.join_table(towns(), on="user"),
    "versions": lambda it: it.temporal_join(towns(), on="user"),
    "two of them": lambda it: enriched(it.temporal_join(towns(), on="user", prefix="its_")),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TAKEN)
def test_sums_of_what_joins_pieces_are_those_of_the_whole(name: str, engine: str) -> None:
    lived = {"user": "ann", "town": "of ann", "since": "11:59:30", "@source": "towns"}
    played = [{**row("ann", at, points), "@source": "events"}
              for at, points in (("12:00:01", 5), ("12:00:02", 2), ("12:00:03", 3), ("12:01", 1))]  # fmt: skip
    answers = []
    for cut in (1, 2, 4):
        by_town = TAKEN[name](pieces()).key_by("town").window(ps.tumbling("1 hour"))
        script = Script(by_town.accumulating().aggregate(points=ps.sum("points"), low=ps.min("low"), n=ps.sum("n"),
                                                         users=ps.distinct("user")), engine)  # fmt: skip
        if len(script.flow.inputs) > 1:
            script.batch([lived])
        for at in range(0, len(played), cut):
            script.batch(played[at : at + cut])
        for _ in script.flow.stages:
            script.batch([], watermark="+inf")
        (only,) = script.panes
        answers.append(only.values)
    assert answers[0] == answers[1] == answers[2] == {"points": 11, "low": 1, "n": 4, "users": 1}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("what", [ps.rows(), ps.mean("points"), ps.max("points"), ps.count("town")])
def test_what_of_pieces_is_not_that_of_the_whole_is_refused_behind_every_stage(name: str, what: ps.Aggregate) -> None:
    wrong = refused(lambda: TAKEN[name](pieces()).key_by("town").window(ps.tumbling("1 hour")).aggregate(one=what))
    assert "over pieces of panes" in wrong.what


@pytest.mark.parametrize("engine", ENGINES)
def test_a_keyed_function_is_given_each_piece_and_what_it_gives_is_its_own(engine: str) -> None:
    script = Script(pieces().key_by("user").process(Everyone()).key_by("user").top(1, by="n"), engine)
    script.batch([row("ann", "12:00:01"), row("ann", "12:00:02")])
    script.batch([row("ann", "12:00:03")])
    script.expect_rows("user  n  rank  op\nann  2  1  1")


def test_rows_that_a_semi_join_gives_for_pieces_are_whole() -> None:
    some = towns().join(pieces(), on="user", between=("0", "1 hour"), how="semi")
    assert some.key_by("town").top(1, by="since")
