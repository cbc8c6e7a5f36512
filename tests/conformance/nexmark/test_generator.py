"""Is the generator the one that is specified: the same draws, one at a time and in columns, whoever asks?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import penstock as ps
from examples.nexmark.generator import Nexmark, nexmark, timeline
from examples.nexmark.java_random import JavaRandom, JavaRandoms
from examples.nexmark.plain import AUCTION, BID, PERSON, events
from examples.nexmark.timeline import last_auction
from penstock.types.timestamps import from_datetime, parse


def reader(**asked: Any) -> Nexmark:
    (one,) = nexmark(**asked).inputs
    found: Nexmark = one.source.reader
    return found


def read(log: Nexmark, limit: int | None) -> list[tuple[str, int, dict[str, Any]]]:
    """Every row that a reader gives, in batches of about so many."""
    found, at = [], log.start()
    while not log.finished(at, 0):
        upto = log.latest(at, 0, limit)
        for split in log.splits(at, upto):
            for chunk in log.read(split):
                rows = chunk.rows.to_pylist()
                found += zip([chunk.partition] * len(rows), chunk.offsets.tolist(), rows, strict=True)
        at = upto
    return found


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without nulls, its times in microseconds."""
    kept = {name: value for name, value in row.items() if value is not None}
    return {name: from_datetime(value) if name in ("date_time", "expires") else value for name, value in kept.items()}


def test_draws_are_those_of_java() -> None:
    """What Java 17 prints; of the second bound every third number is drawn again."""
    random = JavaRandom(42)
    assert [random.below(100) for _ in range(5)] == [30, 63, 48, 84, 70]
    assert JavaRandom(42).share() == 0.7275636800328681
    random = JavaRandom(7)
    drawn = [random.below(1_500_000_000) for _ in range(5)]
    assert drawn == [1371249164, 20678044, 747989380, 1053566254, 1222239534]
    assert random.below(16) == 5


def test_draws_side_by_side_are_the_same_as_one_after_the_other() -> None:
    seeds = np.arange(200)
    alone, beside = [JavaRandom(int(seed)) for seed in seeds], JavaRandoms(seeds)
    bounds = seeds % 7 + 1
    for bound in (10, 16, 13, 1_500_000_000, 2**30):
        assert beside.below(bound).tolist() == [one.below(bound) for one in alone]
        assert beside.below(bounds).tolist() == [one.below(int(n)) for one, n in zip(alone, bounds, strict=True)]
        assert beside.share().tolist() == [one.share() for one in alone]


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_are_bids() -> None:
    kinds = Counter(row["event_type"] for _, row in events(timeline(events=500)))
    assert kinds == {PERSON: 10, AUCTION: 30, BID: 460}


def test_the_newest_auction_is_known_at_every_event() -> None:
    assert [last_auction(event) for event in (0, 1, 2, 3, 4, 49, 50, 51, 54)] == [-1, 0, 1, 2, 2, 2, 2, 3, 5]


def test_generators_share_the_ids_and_begin_at_one_time() -> None:
    rows = list(events(timeline(events=250, generators=4, rate=1_000)))
    assert Counter(generator for generator, _ in rows) == {0: 62, 1: 62, 2: 62, 3: 64}
    begun = [next(row["date_time"] for generator, row in rows if generator == each) for each in range(4)]
    assert begun == [parse("2015-07-15T00:00:00Z")] * 4
    of_one = [row["date_time"] for generator, row in rows if generator == 2]
    assert of_one[1] - of_one[0] == 4_000


def test_disorder_stays_within_its_group_and_loses_nothing() -> None:
    ordered = [row for _, row in events(timeline(events=400, rate=1_000))]
    mixed = [row for _, row in events(timeline(events=400, rate=1_000, group=20))]
    assert mixed != ordered
    for at in range(0, 400, 20):
        assert sorted(map(str, mixed[at : at + 20])) == sorted(map(str, ordered[at : at + 20]))


@pytest.mark.parametrize("asked", [{}, {"group": 30}, {"generators": 7, "rate": 20_000}])
def test_columns_are_the_plain_rows_however_they_are_read(asked: dict[str, int]) -> None:
    wanted = list(events(timeline(events=3_000, **asked)))
    found = sorted(read(reader(events=3_000, **asked), 700), key=lambda row: (int(row[0]), row[1]))
    assert [(int(partition), plain(row)) for partition, _, row in found] == wanted


def test_fewer_columns_are_the_same_columns() -> None:
    whole = read(reader(events=2_000), None)
    few = read(reader(events=2_000, columns=("bidder", "reserve")), None)
    names = ("event_type", "date_time", "reserve", "bidder")
    assert [row for *_, row in few] == [{name: row[name] for name in names} for *_, row in whole]


def test_without_an_end_ids_do_not_meet() -> None:
    log = reader(generators=2)
    at = log.latest(log.start(), 0, 100)
    ids = [{row["id"] for row in chunk.rows.to_pylist() if row["id"]} for s in log.splits(log.start(), at)
           for chunk in log.read(s)]  # fmt: skip
    assert len(ids) == 2
    assert not ids[0] & ids[1]
    assert not log.finished(at, 0)


def test_in_real_time_events_come_when_the_clock_says() -> None:
    log = reader(rate=1_000, realtime=True)
    begun = log.latest(log.start(), 5_000_000, None)
    later = log.latest(begun, 6_000_000, None)
    assert log.made(0, begun["elapsed"]) == 0
    assert log.behind(begun, 6_000_000) == ["0"]
    assert log.made(0, later["elapsed"]) == 1_000
    assert log.behind(later, 6_000_000) == []


@pytest.mark.parametrize(
    "wrong", [{"rate": 0}, {"rate": 2_000_000}, {"generators": True}, {"events": 3, "generators": 4}, {"group": 953}]
)
def test_what_cannot_be_made_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ps.PlanError) as refused:
        nexmark(**wrong)
    assert refused.value.instead.startswith("write ")
    with pytest.raises(ps.PlanError):
        nexmark(columns=("prize",))
