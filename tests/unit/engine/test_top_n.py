"""The best rows of a key: what enters and what it displaces, what they are when a window is over, what is refused."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.plan.operators.join import join_rule
from penstock.plan.operators.top_n import top_rule
from penstock.testing import Script

ENGINES = ("reference", "columnar")


def bids(columns: str = "auction long, bidder long, price long") -> ps.Stream:
    return ps.events(f"{columns}, at timestamp").event_time("at", watermark=ps.by_hand())


def bid(auction: int, bidder: int, price: int | None, at: str = "12:00", **more: Any) -> dict[str, Any]:
    return {"auction": auction, "bidder": bidder, "price": price, "at": at, **more}


def refused(make: Any) -> ps.PlanError:
    with pytest.raises(ps.PlanError) as caught:
        make()
    assert caught.value.why
    assert caught.value.instead
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_enters_displaces_others(engine: str) -> None:
    script = Script(bids().key_by("auction").top(2, by="price"), engine)
    script.batch([bid(1, 1, 10), bid(1, 2, 5), bid(2, 3, 7)])
    script.expect_rows("auction  bidder  rank\n1  1  1\n1  2  2\n2  3  1")
    script.batch([bid(1, 4, 8), bid(1, 5, 1)])
    script.expect_rows("auction  bidder  price  rank  op\n1  2  5  2  -1\n1  4  8  2  1")
    script.batch([bid(1, 6, 20)])
    script.expect_rows("bidder  rank  op\n1  1  -1\n6  1  1\n4  2  -1\n1  2  1")
    assert script.run.open_windows() == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_of_equal_rows_the_earliest_is_better_and_then_the_first_that_came(engine: str) -> None:
    script = Script(bids().key_by("auction").top(2, by="price"), engine)
    script.batch([bid(1, 1, 5, "12:02"), bid(1, 2, 5, "12:01"), bid(1, 3, 5, "12:01")])
    script.expect_rows("bidder  rank\n2  1\n3  2")
    script.batch([bid(1, 4, 5, "12:00"), bid(1, 5, None)])
    script.expect_rows("bidder  rank  op\n2  1  -1\n4  1  1\n3  2  -1\n2  2  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_last_bid_of_each_bidder_is_the_first_by_time(engine: str) -> None:
    script = Script(bids().key_by("bidder", "auction").top(1, by="at"), engine)
    script.batch([bid(1, 1, 5, "12:01"), bid(1, 1, 9, "12:00")])
    script.expect_rows("price  op\n5  1")
    script.batch([bid(1, 1, 7, "12:03")])
    script.expect_rows("price  op\n5  -1\n7  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_least_are_the_best_where_that_is_said(engine: str) -> None:
    script = Script(bids("auction long, bidder long, price double").key_by("auction").top(2, by="price", best="least"),
                    engine)  # fmt: skip
    script.batch([bid(1, 1, 2.0), bid(1, 2, float("nan")), bid(1, 3, -1.0), bid(1, 4, 3.0)])  # type: ignore[arg-type]
    script.expect_rows("bidder  rank\n3  1\n1  2")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_best_of_a_window_are_given_when_it_is_over(engine: str) -> None:
    top = bids().key_by("auction").top(2, by="price", window=ps.tumbling("1 minute"), lateness="1 minute")
    script = Script(top, engine)
    script.batch([bid(1, 1, 5), bid(1, 2, 9), bid(1, 3, 7), bid(1, 4, 1, "12:01")])
    script.batch([], watermark="12:01")
    script.batch([bid(1, 5, 8)])
    script.expect_rows("bidder  rank")
    script.batch([], watermark="12:02")
    script.batch([bid(1, 6, 99)])
    script.expect_rows("bidder  rank  window_start  window_end  event_time\n"
                       "2  1  12:00  12:01  12:00:59.999999\n5  2  12:00  12:01  12:00:59.999999")  # fmt: skip
    script.expect_late("bidder\n6")
    script.batch([], watermark="+inf")
    script.expect_rows("bidder  rank\n4  1")
    assert script.run.open_windows() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_best_of_a_day_are_those_of_its_time_zone(engine: str) -> None:
    top = bids().key_by("auction").top(1, by="price", window=ps.calendar("day", zone="Europe/Berlin"))
    script = Script(top, engine)
    times = ("2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z")
    script.batch([bid(1, at, at, time) for at, time in enumerate(times)], now="2026-03-30")
    script.end()
    script.expect_rows("bidder  window_start  window_end\n"
                       "0  2026-03-27T23:00:00Z  2026-03-28T23:00:00Z\n"
                       "2  2026-03-28T23:00:00Z  2026-03-29T22:00:00Z\n"
                       "3  2026-03-29T22:00:00Z  2026-03-30T22:00:00Z")  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_is_withdrawn_makes_room_for_the_next(engine: str) -> None:
    early = bids().key_by("auction").window(ps.tumbling("1 hour")).trigger(ps.at_watermark(early=ps.count(1)))
    counts = early.retracting().aggregate(n=ps.rows(), price=ps.min("price"))
    script = Script(counts.stream.with_columns(all="1").key_by("all").top(1, by="price"), engine)
    script.batch([bid(1, 1, 9), bid(2, 1, 5)])
    script.expect_rows("auction  price\n1  9")
    script.batch([bid(1, 1, 3)])
    script.expect_rows("auction  price  op\n1  9  -1\n2  5  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_reads_a_running_top_is_corrected(engine: str) -> None:
    top = bids().key_by("auction").top(2, by="price")
    sums = top.key_by("auction").window(ps.global_window()).trigger(ps.repeat(ps.count(1))).accumulating()
    script = Script(sums.aggregate(best=ps.sum("price")), engine)
    script.batch([bid(1, 1, 10), bid(1, 2, 5)])
    script.batch([bid(1, 3, 7)])
    script.expect("auction  best\n1  15\n1  17")


def test_what_stands_is_known_by_key_and_rank() -> None:
    from penstock.plan.output_schemas import target_of

    top = bids().key_by("auction").top(2, by="price")
    target = target_of(top.stage, "rows", "one", "rows")
    assert target.keys == ("auction", "rank")
    assert target.schema.names == ["auction", "bidder", "price", "at", "rank", "op"]
    assert target.withdraws
    table = ps.sqlite("answers.db", table="best").tables(target)
    assert (table.current, table.every) == ("best", None)
    over = bids().key_by("auction").top(2, by="price", window=ps.tumbling("1 minute"))
    assert not target_of(over.stage, "rows", "one", "rows").withdraws


def test_what_is_kept_is_said_and_what_binds() -> None:
    top = bids().key_by("auction").top(10, by="price")
    assert "the 10 best rows of every key, until the input ends" in top.explain()
    assert top.check() == ("top keeps the 10 best rows of every key until the input ends",)
    assert top.stage.operator.binding(top.stage.sides)["kept"] == "the 10 best rows, greatest price"
    over = bids().key_by("auction").top(3, by="price", window=ps.tumbling("1 minute"), lateness="5 seconds")
    assert "of every key and window, until W is at its end and 5 seconds more" in over.explain()


@pytest.mark.parametrize(("window", "words"), [
    (ps.calendar("day"), "each day in UTC"), (ps.tumbling("1 minute"), "tumbling windows of 1 minute"),
])  # fmt: skip
def test_a_window_is_said_in_a_sentence(window: Any, words: str) -> None:
    assert str(top_rule(3, by="price", window=window, lateness=0)) == f"the 3 rows with the greatest price, in {words}"
    reach = join_rule(window=window).reach
    assert str(reach) == f"both in one window: {words}"
    assert reach.binding == f"both in one of the {words}"  # as checkpoints have it


@pytest.mark.parametrize(("make", "what"), [
    (lambda: bids().top(2, by="price"), "no key"),
    (lambda: bids().key_by("auction").top(0, by="price"), "0 rows"),
    (lambda: bids().key_by("auction").top(2, by=3), "by 3"),
    (lambda: bids().key_by("auction").top(2), "by None"),
    (lambda: bids().key_by("auction").top(2, by="prize"), "prize"),
    (lambda: bids().key_by("auction").top(2, by="price", best="biggest"), "biggest"),
    (lambda: bids().key_by("auction").top(2, by="price", window=ps.session("1 minute")), "top of sessions"),
    (lambda: bids().key_by("auction").top(1, by="price", lateness="1 hour"), "lateness='1 hour' and no window"),
    (lambda: bids("auction long, price binary").key_by("auction").top(2, by="price"), "binary"),
    (lambda: bids("auction long, price long, rank long").key_by("auction").top(2, by="price"), "'rank'"),
    (lambda: bids("auction long, price long, op long").key_by("auction").top(2, by="price"), "'op'"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused(make: Any, what: str) -> None:
    assert what in refused(make).what


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    over = Script(bids().key_by("auction").top(2, by="price", window=ps.tumbling("1 minute")), "columnar")
    standing = Script(bids().key_by("auction").top(2, by="price"), "columnar")
    held = []
    for minute in range(40):
        rows = [bid(n % 3, n, n * minute % 7, f"12:{minute:02d}:{n:02d}") for n in range(12)]
        for script in (over, standing):
            script.batch(rows, watermark=f"12:{minute:02d}")
        held.append((over.run.open_windows(), standing.run.open_windows()))
    assert max(held) == (6, 6)


def test_of_many_keys_what_stands_is_what_a_sort_finds() -> None:
    script = Script(bids().key_by("auction").top(2, by="price"), "columnar")
    chosen, every, stands = random.Random(7), [], {}
    for batch in range(8):
        rows = [bid(chosen.randrange(2_500), n, chosen.randrange(50), f"12:{batch:02d}:{chosen.randrange(60):02d}")
                for n in range(1_500)]  # fmt: skip
        if batch == 5:
            script.restart()
        every += [(row["auction"], -row["price"], row["at"], batch, at) for at, row in enumerate(rows)]
        for given in script.batch(rows).rows:
            slot = (given.row["auction"], given.row["rank"])
            if given.op < 0:
                assert stands.pop(slot) == given.row
            else:
                assert slot not in stands
                stands[slot] = given.row
    wanted: dict[Any, list[int]] = {}
    for auction, price, *_ in sorted(every):
        wanted.setdefault(auction, []).append(-price)
    best = {(auction, rank): price for auction, prices in wanted.items() for rank, price in enumerate(prices[:2], 1)}
    assert {slot: row["price"] for slot, row in stands.items()} == best


def test_a_database_keeps_what_stands(tmp_path: Path) -> None:
    from penstock.connectors.sink import Batch
    from penstock.plan.output_schemas import target_of

    top = bids("auction long, price long").key_by("auction").top(2, by="price")
    target = target_of(top.stage, "rows", "one", "rows")
    writer = ps.sqlite(str(tmp_path / "answers.db"), table="best").open(target)
    writer.begin("lineage", 1)
    script = Script(top, "columnar")
    for number, rows in enumerate(([bid(1, 0, 5), bid(2, 0, 4)], [bid(1, 0, 7)], [bid(1, 0, 9), bid(2, 0, 1)])):
        given = script.batch([{key: row[key] for key in ("auction", "price", "at")} for row in rows]).rows
        table = pa.Table.from_pylist([{**one.row, "op": one.op} for one in given]).select(target.schema.names)
        batch = Batch("lineage", number, 1, table.num_rows, "")
        writer.write(batch, [table.cast(target.schema)])
        writer.commit(batch)
    writer.close()
    with sqlite3.connect(tmp_path / "answers.db") as connection:
        found = connection.execute("SELECT auction, rank, price FROM best ORDER BY 1, 2").fetchall()
    assert found == [(1, 1, 9), (1, 2, 7), (2, 1, 4), (2, 2, 1)]
