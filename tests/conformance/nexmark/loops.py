"""What the pattern queries ask, as plain loops over the bids of one bidder for one auction, in order of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.types.durations import SECOND

Bid = dict[str, Any]
Found = list[tuple[int, dict[str, Any]]]  # where a match ends, and what it says


def falling(bids: list[Bid], start: int) -> tuple[int, dict[str, Any]] | None:
    """A price that falls at least once and then rises; the next match may begin with the rise."""
    end = start + 1
    while end < len(bids) and bids[end]["price"] < bids[end - 1]["price"]:
        end += 1
    if end - start < 2 or end == len(bids) or bids[end]["price"] == bids[end - 1]["price"]:
        return None
    times = {"start_tstamp": bids[start], "bottom_tstamp": bids[end - 1], "end_tstamp": bids[end]}
    return end, {name: bid["date_time"] for name, bid in times.items()}


def cheap(bids: list[Bid], start: int) -> tuple[int, dict[str, Any]] | None:
    """Bids whose average stays low, as many as there are, and one more."""
    total, end = 0, start
    while end < len(bids) and (total + bids[end]["price"]) / (end - start + 1) < 10_000:
        total, end = total + bids[end]["price"], end + 1
    if end == start or end == len(bids):
        return None
    said = {"start_tstamp": bids[start]["date_time"], "end_tstamp": bids[end - 1]["date_time"]}
    return end + 1, {**said, "avg_price": total / (end - start)}


def drop(bids: list[Bid], start: int) -> tuple[int, dict[str, Any]] | None:
    """The first bid that is lower by more than 50, with none between that is lower by just 50."""
    for end in range(start + 1, len(bids)):
        lower = bids[start]["price"] - bids[end]["price"]
        if bids[end]["date_time"] - bids[start]["date_time"] >= 5 * SECOND or lower == 50:
            return None
        if lower > 50:
            return end + 1, {"drop_time": bids[end]["date_time"], "drop_diff": lower}
    return None


def matches(bids: list[Bid], rule: Callable[[list[Bid], int], Any], *, past: bool) -> list[dict[str, Any]]:
    """All matches; after one the next may begin where it says, or with the next bid."""
    found, start = [], 0
    while start < len(bids):
        match = rule(bids, start)
        if match is not None:
            found.append(match[1])
        start = match[0] if match is not None and past else start + 1
    return found


LOOPS: dict[str, Callable[[list[Bid]], list[dict[str, Any]]]] = {
    "cep0": lambda bids: matches(bids, falling, past=True),
    "cep1": lambda bids: matches(bids, cheap, past=True),
    "cep2": lambda bids: matches(bids, cheap, past=False),
    "cep3": lambda bids: matches(bids, drop, past=True),
}
