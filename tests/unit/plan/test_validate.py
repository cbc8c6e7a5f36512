"""What cannot be right is refused before anything runs, in three parts, with a hint that helps."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

import penstock as ps
from penstock.model.aggregates import count as count_values

EVENTS = ps.events("at timestamp, points long, team string, raw binary")
OTHER = ps.events("at timestamp, score long", name="other")


def timed(watermark=None):
    return EVENTS.event_time("at", watermark=watermark or ps.bounded("2 minutes"))


def shown_when(predicate, **aggregates):
    return hourly().trigger(ps.when(predicate)).accumulating().aggregate(**aggregates)


def hourly(**more):
    return timed().window(ps.tumbling("1 hour"), **more)


REFUSED = {
    # name: (what is tried, what is said, the hint)
    "unknown key": (lambda: timed().key_by("taem"), "key_by names the column 'taem'", "did you mean 'team'"),
    "key that is no name": (lambda: timed().key_by(3), "not the name of a column", "in quotes"),
    "key twice": (lambda: timed().key_by("team", "team").window(ps.tumbling("1 h")).aggregate(n=ps.rows()),
                  "'team' stands for two", r"\.key_by\('team'\)"),
    "unknown column in select": (lambda: timed().select("point"), "select names the column 'point'", "'points'"),
    "unknown column in where": (lambda: timed().where("pionts > 1"), "where names the column", "'points'"),
    "unknown column in sum": (lambda: hourly().aggregate(n=ps.sum("point")), "sum names the column", "'points'"),
    "unknown column in when": (lambda: hourly().trigger(ps.when("totl > 1")).accumulating().aggregate(total=ps.rows()),
                               "when names the column 'totl'", "'total'"),
    "unknown time column": (lambda: EVENTS.event_time("att", watermark=ps.ascending()), "event_time names", "'at'"),
    "where that is no boolean": (lambda: timed().where("points + 1"), "gives a long", "points \\+ 1 > 0"),
    "where of nothing": (lambda: timed().where(None), "where was given None", "lambda row"),
    "map of no function": (lambda: timed().map("x"), "map was given 'x'", "lambda row"),
    "map_batches of no function": (lambda: timed().map_batches(3), "map_batches was given 3", "write"),
    "column twice": (lambda: timed().select("at", at="points"), "'at' is there twice", "name of its own"),
    "expression unreadable": (lambda: timed().where("points >"), "cannot be read at position", "write it as in SQL"),
    "expression of a number": (lambda: ps.when(3), "3 is not an expression", "lit\\(3\\)"),
    "types mixed": (lambda: timed().where("team > 3"), "mixes types", "cast"),
    "schema of no type": (lambda: ps.events("at"), "not a name and a type", "team string"),
    "schema of an unknown type": (lambda: ps.events("at timestmp"), "no type 'timestmp'", "'timestamp'"),
    "schema of nested type": (lambda: ps.events("tags array<string>"), "array<string> are not supported", "string"),
    "schema of nothing": (lambda: ps.events(None), "None is not a schema", "team string"),
    "schema with a column twice": (lambda: ps.events("a long, a long"), "'a' is there twice", "name of its own"),
    "schema with the kit's name": (lambda: ps.events("@a long"), "cannot be the name", "another name"),
    "source with a slash": (lambda: ps.events("at timestamp", name="a/b"), "cannot be called 'a/b'", "name="),
    "max_bad of words": (lambda: ps.events("at timestamp", max_bad="many"), "max_bad is 'many'", '"1%"'),
    "max_bad below nothing": (lambda: ps.events("at timestamp", max_bad=-1), "max_bad is -1", "max_bad=100"),
    "max_bad above all": (lambda: ps.events("at timestamp", max_bad="101%"), "max_bad is '101%'", '"1%"'),
    "union of different columns": (lambda: EVENTS.union(OTHER), "different columns", r"\.select\('at', 'points'"),
    "union of one name": (lambda: EVENTS.union(EVENTS), "one name", "name="),
    "union with half a clock": (lambda: timed().union(ps.events(EVENTS.schema, name="b")), "not", "each before"),
    "union of no stream": (lambda: EVENTS.union("x"), "not a stream", "web.union"),
    "event time twice": (lambda: timed().event_time("at", watermark=ps.ascending()), "already", "leave one"),
    "watermark as text": (lambda: timed("2 minutes"), "'2 minutes' is not a watermark", r"ps\.bounded"),
    "number without unit": (lambda: EVENTS.event_time("points", watermark=ps.ascending()), "without a unit", "unit="),
    "unknown unit": (lambda: EVENTS.event_time("points", unit="h", watermark=ps.ascending()), "no unit 'h'", '"ms"'),
    "bytes as time": (lambda: EVENTS.event_time("raw", watermark=ps.ascending()), "is not a time", "name the column"),
    "mark that is no boolean": (lambda: timed(ps.punctuated("points")), "not a boolean", "comparison"),
    "from_column of no time": (lambda: timed(ps.from_column("raw")), "is not a time", "name the column"),
    "percentile above one": (lambda: ps.percentile(99), "not a share", r"percentile\(0\.99\)"),
    "floor above ceiling": (lambda: ps.percentile(0.9, "2 h", "1 h"), "above the ceiling", 'floor="1 hour"'),
    "when_idle misspelt": (lambda: ps.bounded("1 m", when_idle="hodl"), "when_idle is 'hodl'", "'hold'"),
    "advance without idle": (lambda: ps.bounded("1 m", idle=None, when_idle="advance"), "never advances", "idle="),
    "no event time": (lambda: EVENTS.window(ps.tumbling("1 h")).aggregate(n=ps.rows()), "no event", r"\.event_time"),
    "window as text": (lambda: timed().window("1 hour"), "'1 hour' is not a window", r"ps\.tumbling"),
    "size of nothing": (lambda: ps.tumbling("0"), "not longer than nothing", 'size="1 minute"'),
    "size below nothing": (lambda: ps.session("-1 minute"), "not longer than nothing", 'gap="1 minute"'),
    "size misspelt": (lambda: ps.tumbling("5 minuets"), "unknown unit 'minuets'", "'minutes'"),
    "size of a number": (lambda: ps.tumbling(5), "5, which is not a duration", '"5 seconds"'),
    "size unreadable": (lambda: ps.tumbling("five"), "cannot be read", '"5 minutes"'),
    "size too long": (lambda: ps.tumbling(timedelta.max), "too long", "1000 days"),
    "lateness below nothing": (lambda: hourly(lateness="-1 s"), "negative", 'lateness="0"'),
    "sliding with gaps": (lambda: ps.sliding("1 minute", every="1 hour"), "leave gaps", r"ps\.sliding\(\"1 hour\""),
    "calendar of a year": (lambda: ps.calendar("dya"), "'dya'", "'day'"),
    "zone misspelt": (lambda: ps.calendar("day", zone="Europe/Berln"), "'Europe/Berln'", "'Europe/Berlin'"),
    "zone of nothing": (lambda: ps.calendar("day", zone=None), "no time zone None", "zone="),
    "custom of no function": (lambda: ps.custom([(0, 1)]), "not given functions", r"ps\.custom\(lambda"),
    "trigger as text": (lambda: hourly().trigger("every minute"), "'every minute' is not", r"ps\.at_watermark"),
    "trigger that is an aggregate": (lambda: hourly().trigger(ps.count("points")), "not a trigger", "write"),
    "part that is no trigger": (lambda: ps.count(1) | "x", "'x' is not a trigger", r"ps\.count"),
    "early that is no trigger": (lambda: ps.at_watermark(early=5), "5 is not a trigger", r"ps\.count"),
    "early that holds at_watermark": (lambda: ps.at_watermark(early=ps.repeat(ps.at_expiry())), "holds", "early=ps"),
    "count of nothing": (lambda: ps.count(0), "count\\(0\\)", r"ps\.count\(1\)"),
    "every of nothing": (lambda: ps.every("0 s"), "not longer than nothing", 'period="1 minute"'),
    "after below nothing": (lambda: ps.after("-1 s"), "negative", 'delay="0"'),
    "when that is no boolean": (lambda: hourly().trigger(ps.when("n + 1")).accumulating().aggregate(n=ps.rows()),
                                "not a boolean", "comparison"),
    "when over a key": (lambda: timed().key_by("team").window(ps.tumbling("1 h")).trigger(ps.when("team = 'a'"))
                        .accumulating().aggregate(n=ps.rows()), "when names the column 'team'", "known: n"),
    "decimal of no such scale": (lambda: ps.events("v decimal(5,-2)"), "no type decimal\\(5,-2\\)", "decimal"),
    "global that never ends": (lambda: timed().window(ps.global_window()).aggregate(n=ps.rows()), "global", "repeat"),
    "global that finishes": (lambda: timed().window(ps.global_window()).trigger(ps.count(1)).discarding().aggregate(
        n=ps.rows()), "global", "repeat"),
    "no mode, early": (lambda: hourly().trigger(ps.every("1 minute")).aggregate(n=ps.rows()), "more than once",
                       r"\.accumulating\(\)"),
    "no mode, lateness": (lambda: hourly(lateness="1 minute").aggregate(n=ps.rows()), "more than once", "discarding"),
    "aggregate of nothing": (lambda: hourly().aggregate(), "aggregate of nothing", r"ps\.rows"),
    "aggregate as text": (lambda: hourly().aggregate(n="rows"), "'rows' is not an aggregate", r"n=ps\.rows"),
    "aggregate that is a trigger": (lambda: hourly().aggregate(n=ps.count(3)), "not an aggregate", r"ps\.rows"),
    "aggregate of an expression": (lambda: hourly().aggregate(n=ps.sum(ps.col("points"))), "not the name", "quotes"),
    "aggregate with a pane's name": (lambda: hourly().aggregate(op=ps.rows()), "pane's own", "otherwise"),
    "aggregate with a key's name": (lambda: timed().key_by("team").window(ps.tumbling("1 h")).aggregate(team=ps.rows()),
                                    "two columns", "total_team"),
    "sum of text": (lambda: hourly().aggregate(n=ps.sum("team")), "type string", "cast\\(team as double\\)"),
    "sum of times": (lambda: hourly().aggregate(n=ps.sum("at")), "type timestamp", "count"),
    "max of bytes": (lambda: hourly().aggregate(n=ps.max("raw")), "orders by", "order by"),
    "where= that is no boolean": (lambda: hourly().aggregate(n=ps.rows(where="points")), "not a boolean", "points > 0"),
    "sum of an expression in text": (lambda: hourly().aggregate(n=ps.sum("points * 2")), r"column 'points \* 2'",
                                     r'\.with_columns\(n_="points \* 2"\).*ps\.sum\("n_"\)'),
    "by of an expression in text": (lambda: hourly().aggregate(n=ps.arg_max("team", by="-points")), "'-points'",
                                    "with_columns"),
    "by of nothing": (lambda: ps.arg_max("team", by=None), r"by= of ps\.arg_max was given None", "in quotes"),
    "by of a number": (lambda: ps.top_k("team", 3, by=7), r"by= of ps\.top_k was given 7", "in quotes"),
    "when over an unknown aggregate": (lambda: shown_when("pionts > 1", points=ps.rows()),
                                       "not one of the aggregates", "'points'"),
    "when over a list": (lambda: shown_when("c = 1", c=ps.collect("points")), "'c', which is a list", r"ps\.rows"),
    "when over a list that is null": (lambda: shown_when("c is null", c=ps.top_k("points", 3)), "is a list", "single"),
    "when over a list deep inside": (lambda: shown_when("n > 1 and coalesce(c, c) = c", n=ps.rows(),
                                                        c=ps.collect("points")), "is a list", "single"),
    "once as text": (lambda: ps.when("n > 1", once="yes"), "once is 'yes'", "once=True"),
    "bounded as text": (lambda: ps.events("at timestamp", bounded="yes"), "bounded is 'yes'", "bounded=True"),
    "schema of no columns": (lambda: ps.events(""), "no columns", "team string"),
    "schema of a comma": (lambda: ps.events(" , "), "no columns", "team string"),
    "schema with a colon": (lambda: ps.events("a: long"), "'a: long' has a colon", '"a long"'),
    "schema with a colon and no space": (lambda: ps.events("a:long"), "has a colon", '"a long"'),
    "schema with a colon apart": (lambda: ps.events("at timestamp, a : decimal(10,2)"), "has a colon",
                                  r'"a decimal\(10,2\)"'),
    "schema of a struct": (lambda: ps.events("a struct<b:long>"), "not supported", "carry it as a string"),
    "event time as an expression": (lambda: EVENTS.event_time(ps.col("at"), watermark=ps.ascending()),
                                    "not the name of a column", "plain name in quotes: 'at'"),
    "event time without a watermark": (lambda: EVENTS.event_time("at"), "does not say how the watermark",
                                       r"\.event_time\('at', watermark=ps\.bounded"),
    "event time of an unknown column without a watermark": (lambda: EVENTS.event_time("att"), "names the col", "'at'"),
    "lateness of a number": (lambda: hourly(lateness=5), "lateness is 5", '^write words, such as "5 seconds"'),
    "delay of nothing": (lambda: ps.bounded(None), "delay is None", '"5 minutes"'),
    "size of a boolean": (lambda: ps.tumbling(True), "True, which is not a duration", '"5 minutes"'),
    "zone of nowhere": (lambda: ps.calendar("day", zone="xyzzyx"), "no time zone 'xyzzyx'", '^write zone="Europe/Berl'),
    "triggers joined by or": (lambda: ps.count(1) or ps.count(2), "true or false", r"a \| b"),
    "triggers joined by and": (lambda: ps.every("1 minute") and ps.count(2), "true or false", "a & b"),
    "not of a trigger": (lambda: not ps.never(), "true or false", "a & b"),
    "trigger before window": (lambda: timed().trigger(ps.count(1)), "no windows", r"\.window\(.* first"),
    "accumulating before window": (lambda: timed().accumulating(), "no windows", r"first, then \.accumulating"),
    "discarding before window": (lambda: timed().discarding(), "no windows", r"first, then \.discarding"),
    "retracting before window": (lambda: timed().retracting(), "no windows", r"first, then \.retracting"),
    "aggregate before window": (lambda: timed().aggregate(n=ps.rows()), "no windows", r"first, then \.aggregate"),
    "expression as a boolean": (lambda: bool(ps.col("points") > 1), "true or false", "&"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED, ids=str)
def test_a_mistake_is_refused_in_three_parts(mistake):
    tried, said, hint = REFUSED[mistake]
    with pytest.raises(ps.PlanError) as error:
        tried()
    refusal = error.value
    assert re.search(said, refusal.what), refusal.what
    assert re.search(hint, refusal.instead), refusal.instead
    assert refusal.why
    assert str(refusal).splitlines()[0] == refusal.what


class Nothing:
    zero = add = combine = result = print


@pytest.mark.parametrize("column", [None, 3, b"points", ps.col("points"), ["points"]], ids=repr)
@pytest.mark.parametrize("made", [
    ps.sum, ps.min, ps.max, ps.mean, ps.variance, ps.first, ps.last, ps.collect, ps.distinct, ps.approx_distinct,
    count_values, lambda column: ps.arg_min(column, "points"), lambda column: ps.arg_max(column, "points"),
    lambda column: ps.arg_min("team", column), lambda column: ps.arg_max("team", by=column),
    lambda column: ps.top_k(column, 3), lambda column: ps.approx_quantile(column, 0.5),
    lambda column: ps.fold(column, Nothing(), type="long"),
])  # fmt: skip
def test_an_aggregate_of_what_is_no_column_is_refused_at_once(made, column):
    with pytest.raises(ps.PlanError, match="which is not the name of a column") as error:
        made(column)
    assert ("plain name in quotes: 'points'" in error.value.instead) == isinstance(column, type(ps.col("points")))


@pytest.mark.parametrize("hint", [
    lambda: timed().with_columns(n_="points * 2").window(ps.tumbling("1 hour")).aggregate(n=ps.sum("n_")),
    lambda: shown_when("plays > 100", plays=ps.rows(), c=ps.collect("points")),
    lambda: ps.events('"a:b" long'),
    lambda: timed().where("points > 0"), lambda: ps.sliding("1 hour", every="1 minute"), lambda: ps.custom(
        lambda t: [(t, t + 1_000_000)]), lambda: hourly().trigger(ps.at_watermark()), lambda: ps.at_watermark(
        early=ps.count(1)), lambda: timed().with_columns(team="cast(team as double)").window(
        ps.tumbling("1 hour")).aggregate(n=ps.sum("team")),
    lambda: timed().window(ps.global_window()).trigger(ps.repeat(ps.count(1000))).discarding().aggregate(n=ps.rows()),
    lambda: EVENTS.event_time("points", unit="ms", watermark=ps.ascending()), lambda: ps.punctuated("kind = 'mark'"),
    lambda: ps.percentile(0.99), lambda: ps.events("at timestamp", max_bad="1%"),
])  # fmt: skip
def test_what_the_hints_say_is_accepted(hint):
    assert hint() is not None


@pytest.mark.parametrize(("panes", "warning"), [
    (lambda: timed().window(ps.sliding("1 hour", every="1 second")).aggregate(n=ps.rows()), "3,600 windows"),
    (lambda: timed(ps.ascending(idle=None)).window(ps.tumbling("1 h")).aggregate(n=ps.rows()), "idle=None"),
    (lambda: timed().map(len).window(ps.tumbling("1 h")).aggregate(n=ps.rows()), "map len runs Python"),
    (lambda: timed().window(ps.custom(lambda t: [(t, t + 1)])).aggregate(n=ps.rows()), "custom windows run Python"),
    (lambda: hourly().aggregate(n=ps.distinct("team")), "approx_distinct"),
    (lambda: hourly().trigger(ps.at_expiry()).aggregate(n=ps.rows()), "same as at_watermark"),
])  # fmt: skip
def test_what_is_costly_or_surprising_is_warned_of(panes, warning):
    assert any(warning in said for said in panes().check())


def test_a_plain_plan_has_no_warnings():
    assert hourly().aggregate(n=ps.rows()).check() == ()


def test_windows_over_windows_have_none_either():
    """What a stage gives has no partitions that could fall silent."""
    hours = hourly().aggregate(n=ps.rows()).stream
    assert hours.window(ps.tumbling("3 hours")).aggregate(n=ps.sum("n")).check() == ()
