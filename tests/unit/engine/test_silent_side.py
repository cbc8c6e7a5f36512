"""A side of a join that says nothing: once it is idle W follows the other alone, or it is waited for."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script

LATER = pytest.mark.parametrize("idle", [None, "5 minutes"])


def read(name: str, columns: str, time: str, **said: str | None) -> ps.Stream:
    return ps.events(columns, name=name).event_time(time, watermark=ps.bounded("10 seconds", **said))


def paid(engine: str, **said: str | None) -> Script:
    """Orders at the rate of their moment: 108 from 09:00, an order at 10:00:10, and another two minutes later."""
    orders = read("orders", "currency string, at timestamp, amount double", "at")
    rates = read("rates", "currency string, since timestamp, rate double", "since", **said)
    script = Script(orders.temporal_join(rates, on="currency"), engine)
    script.batch([version("09:00", 108.0), order("10:00:10")], now="10:00:40")
    script.batch([order("10:02:10")], now="10:02:10")
    script.expect_rows()
    script.advance("10:02:11")
    return script


def order(at: str) -> dict[str, object]:
    return {"@source": "orders", "currency": "EUR", "at": at, "amount": 1.0}


def version(since: str, rate: float) -> dict[str, object]:
    return {"@source": "rates", "currency": "EUR", "since": since, "rate": rate}


def test_an_order_is_given_at_the_version_known_once_the_table_is_idle(engine: str) -> None:
    script = paid(engine)
    script.expect_rows({"at": "10:00:10", "rate": 108.0})
    script.batch([version("10:00", 110.0)], now="10:02:12")
    script.expect_late({"since": "10:00"})
    assert script.counts.late == 1
    script.end()
    script.expect_rows({"at": "10:02:10", "rate": 108.0})


@LATER
def test_an_order_waits_for_a_table_that_is_not_idle_so_soon(engine: str, idle: str | None) -> None:
    script = paid(engine, idle=idle)
    script.expect_rows()
    script.batch([version("10:00", 110.0)], now="10:02:12")
    script.expect_late()
    script.end()
    script.expect_rows({"at": "10:00:10", "rate": 110.0}, {"at": "10:02:10", "rate": 110.0})


def shown(engine: str, **said: str | None) -> Script:
    """Impressions that nobody has clicked on while the clicks say nothing; a click that was under way comes then."""
    impressions = read("impressions", "ad string, at timestamp", "at")
    clicks = read("clicks", "ad string, seen timestamp", "seen", **said)
    joined = impressions.join(clicks, on="ad", between=("0", "1 minute"), how="left")
    script = Script(joined, engine)
    first = {"@source": "clicks", "ad": "y", "seen": "10:00:00"}
    script.batch([first, {"@source": "impressions", "ad": "x", "at": "10:00:00"}], now="10:00:40")
    script.batch([{"@source": "impressions", "ad": "z", "at": "10:02:10"}], now="10:02:10")
    script.advance("10:02:11")
    script.batch([{"@source": "clicks", "ad": "x", "seen": "10:00:30"}], now="10:02:12")
    return script


def test_a_row_is_padded_once_the_other_side_is_idle(engine: str) -> None:
    script = shown(engine)
    script.expect_rows({"ad": "x", "at": "10:00:00", "seen": None})
    script.expect_late({"seen": "10:00:30"})


@LATER
def test_a_row_is_not_padded_while_the_other_side_is_waited_for(engine: str, idle: str | None) -> None:
    script = shown(engine, idle=idle)
    script.expect_rows({"ad": "x", "at": "10:00:00", "seen": "10:00:30"})
    script.expect_late()
