"""Worked examples 14 to 16, and stages one after the other; each test can be read alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import penstock as ps
from penstock.testing import Script


class ThreeInARow(ps.KeyedFunction):
    """Three failed logins in a row raise an alert and reset; a success resets."""

    output = "user string, at timestamp"
    failures = ps.value("long", default=0)

    def on_event(self, event, key, context):  # type: ignore[no-untyped-def]
        self.failures = 0 if event["ok"] else self.failures + 1
        if self.failures == 3:
            context.emit(user=key, at=context.time)
            self.failures = 0


def stream(columns: str, name: str) -> ps.Stream:
    """Events whose watermark the test gives."""
    return ps.events(f"{columns}, at timestamp", name=name).event_time("at", watermark=ps.by_hand())


LOGINS = {"FFF": 1, "FFSFF": 0, "FFFF": 1, "FFFFFF": 2}


def test_14_three_failed_logins_in_a_row(engine: str) -> None:
    """Four users, each called as their logins are; two minutes a batch, and a crash after each."""
    told = stream("user string, ok boolean", "logins").key_by("user").process(ThreeInARow(), ordered=True)
    script = Script(told, engine)
    for first in (0, 2, 4):
        script.batch([{"user": user, "ok": user[minute] == "S", "at": f"12:0{minute}"}
                      for minute in (first, first + 1) for user in LOGINS if minute < len(user)])  # fmt: skip
        script.watermark(f"12:0{first + 2}")
        script.restart()
    script.end()
    assert Counter(one.row["user"] for one in script.rows) == Counter(LOGINS)


def test_14_the_same_whatever_the_order_in_which_they_come(engine: str) -> None:
    told = stream("user string, ok boolean", "logins").key_by("user").process(ThreeInARow(), ordered=True)
    script = Script(told, engine)
    script.batch(
        "user  ok  at\nann  false  12:04\nann  true  12:02\nann  false  12:00\nann  false  12:03\nann  false  12:05"
    )
    script.end()
    script.expect_rows("user  at\nann  12:05")


def clicked(how: str = "left") -> ps.Rows:
    """Clicks within five minutes of an impression."""
    impressions = stream("ad string", "impressions")
    clicks = ps.events("ad string, clicked timestamp", name="clicks").event_time("clicked", watermark=ps.by_hand())
    return impressions.join(clicks, on="ad", between=("0", "5 minutes"), how=how)  # type: ignore[arg-type]


def test_15_clicks_within_five_minutes_of_an_impression(engine: str) -> None:
    script = Script(clicked(), engine)
    script.batch([
        {"ad": "a", "at": "10:00"}, {"ad": "a", "at": "10:20"},
        *({"@source": "clicks", "ad": "a", "clicked": at} for at in ("10:03", "10:05:00", "10:05:01", "09:59")),
    ])  # fmt: skip
    script.expect_rows("ad  at  clicked\na  10:00  10:03\na  10:00  10:05")
    script.watermark("10:25")
    script.expect_rows()
    script.watermark("10:25:00.000001")
    script.expect_rows("ad  at  clicked\na  10:20  null")
    assert script.run.open_windows() == 0


def rated() -> ps.Rows:
    """Orders at the rate of their moment, in hundredths."""
    rates = stream("currency string, rate long", "rates")
    orders = ps.events("currency string, amount long, ordered timestamp", name="orders")
    timed = orders.event_time("ordered", watermark=ps.by_hand())
    return timed.temporal_join(rates.with_columns(valid="at").select("currency", "rate", "valid"), on="currency")


def test_16_an_order_at_the_rate_of_its_moment(engine: str) -> None:
    priced = rated().with_columns(cents="amount * rate")
    script = Script(priced.key_by("currency").window(ps.tumbling("1 day")).aggregate(
        each=ps.collect("cents")), engine)  # fmt: skip
    script.batch([
        {"@source": "rates", "currency": "EUR", "rate": 108, "at": "09:00"},
        {"@source": "rates", "currency": "EUR", "rate": 110, "at": "10:00"},
        {"@source": "orders", "currency": "EUR", "amount": 100, "ordered": "10:00:00"},
    ])  # fmt: skip
    script.batch([{"@source": "orders", "currency": "EUR", "amount": 100, "ordered": "09:59:59"}])
    script.end()
    assert [pane.values["each"] for pane in script.panes] == [[10_800, 11_000]]


def test_16_rates_that_come_before_all_orders_make_none_late(engine: str) -> None:
    """W follows the rows here: as long as no order has come, it waits for them."""
    orders = ps.events("currency string, amount long, ordered timestamp", name="orders")
    rates = ps.events("currency string, rate long, at timestamp", name="rates")
    paid = orders.event_time("ordered", watermark=ps.ascending()).temporal_join(
        rates.event_time("at", watermark=ps.ascending()), on="currency"
    )
    script = Script(paid, engine)
    script.batch("currency  rate  at  @source\nEUR  108  09:00  rates\nEUR  110  10:00  rates", now="10:00")
    script.batch("currency  amount  ordered  @source\nEUR  1  09:59:59  orders\nEUR  2  10:00  orders", now="10:00:30")
    script.expect_late()
    script.batch()
    script.expect_rows({"amount": 1, "rate": 108})
    script.end()
    script.expect_rows({"amount": 2, "rate": 110})


def test_a_window_over_what_a_join_gives_misses_nothing(engine: str) -> None:
    counts = clicked().key_by("ad").window(ps.tumbling("10 minutes")).aggregate(n=ps.rows(), clicks=ps.count("clicked"))
    script = Script(counts, engine)
    script.batch([{"ad": "a", "at": "10:01"}, {"ad": "b", "at": "10:02"}])
    script.batch([{"@source": "clicks", "ad": "a", "clicked": "10:04"}])
    for minute in range(5, 30, 5):
        script.watermark(f"10:{minute:02d}")
    script.end()
    script.expect("ad  start  n  clicks\na  10:00  1  1\nb  10:00  1  0")
    script.expect_late()


def test_windows_of_windows(engine: str) -> None:
    scores = stream("team string, points long", "scores").key_by("team")
    minutes = scores.window(ps.tumbling("1 minute")).aggregate(points=ps.sum("points"))
    best = minutes.stream.key_by("team").window(ps.tumbling("5 minutes")).aggregate(best=ps.max("points"))
    script = Script(best, engine)
    script.batch("team  points  at\nred  3  12:00:10\nred  4  12:00:50\nred  6  12:03:00\nblue  2  12:04:59")
    script.restart()
    script.end()
    script.expect("team  start  best\nred  12:00  7\nblue  12:00  2")


def test_split_sends_each_row_to_the_first_part_that_holds(engine: str) -> None:
    parts = stream("points long", "scores").split(high="points > 10", low="points > 5")
    for name, wanted in (("high", [20]), ("low", [7]), ("rest", [1, None])):
        script = Script(parts[name].key_by("points").dedup("points", within="1 hour"), engine)
        script.batch([{"points": value, "at": "12:00"} for value in (20, 7, 1, None)])
        assert sorted((row.row["points"] for row in script.rows), key=str) == sorted(wanted, key=str)


def test_row_13_a_producer_that_says_the_same_twice_is_counted(engine: str) -> None:
    clicks = stream("id string", "clicks").dedup("id", within="1 hour")
    script = Script(clicks, engine)
    script.batch("id  at\nx  12:00\nx  12:00\ny  12:01\nx  12:30")
    script.restart()
    script.batch("id  at\nx  12:59\ny  13:30")
    script.expect_rows("id  at\nx  12:00\ny  12:01\ny  13:30")
    assert script.counts.deduplicated == 3


async def located(row: dict[str, Any]) -> dict[str, Any]:
    """A service that knows where addresses lie."""
    await asyncio.sleep(0)
    if row["ip"] == "?":
        raise LookupError("no address")
    return {"country": "DE" if row["ip"].startswith("10.") else "NO", "risk": len(row["ip"])}


def test_logins_from_a_country_that_a_service_names(engine: str) -> None:
    """The example of docs/enrich.md: each login with its country, and in how many countries a user was."""
    logins = stream("user string, ip string", "logins").key_by("user")
    known = logins.enrich(located, on="ip", output="country string, risk long", retries=0, cache="1 hour")
    script = Script(known.window(ps.tumbling("1 hour")).aggregate(countries=ps.distinct("country")), engine)
    script.batch("user  ip  at\nann  10.1  12:00\nbob  10.1  12:01\nann  7.7.7  12:02\nbob  ?  12:03")
    script.expect_quarantined({"step": "enrich", "reason": "LookupError: no address"})
    script.restart()
    script.batch("user  ip  at\nbob  10.1  12:04")
    script.expect_quarantined()
    script.end()
    script.expect({"user": "ann", "countries": 2}, {"user": "bob", "countries": 1})
