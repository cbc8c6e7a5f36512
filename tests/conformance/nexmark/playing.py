"""Queries played batch by batch, and what stands when all has been read."""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import penstock as ps
from examples.nexmark.generator import COLUMNS, nexmark, timeline
from examples.nexmark.plain import event
from examples.nexmark.site import Site
from penstock.plan.graph import AnyStage
from penstock.plan.stages import Plan
from penstock.testing import Script
from penstock.testing.tables import read_table
from penstock.types.durations import SECOND
from penstock.types.timestamps import parse

BEGIN = parse("2015-07-15T00:00:00Z")
TIMES = ("date_time", "expires", "stime", "bid_date_time", "auction_date_time")
Row = dict[str, Any]
Answer = ps.Stream | ps.Panes


def site(columns: Sequence[str] = ()) -> Site:
    """The events of a test, which are handed in; `columns` names those it needs."""
    (one,) = nexmark(columns=columns).inputs
    return Site(ps.events(one.source.schema, name="nexmark", bounded=True))


def made(only: Sequence[int] = (), **asked: Any) -> list[Row]:
    """Events of all generators or of some, as rows with their partitions, in order of time."""
    whole = timeline(**asked)
    rows = [{**event(whole, generator, number), "@partition": str(generator)}
            for generator in only or range(whole.generators) for number in range(whole.share(generator))]  # fmt: skip
    return sorted(rows, key=lambda row: row["date_time"])


def stage_of(answer: Answer) -> AnyStage:
    """What a script plays: the last stage, or rows passed on as they are."""
    if isinstance(answer, ps.Panes):
        return answer.plan
    return answer.write(ps.memory("unused")).plan


def played(answer: Answer, batches: Iterable[Sequence[Row]], engine: str, *, restart: bool = False) -> Script:
    """All batches, with a restart after each where that is asked for, and the end of the input."""
    script = Script(stage_of(answer), engine)
    names = script.flow.inputs[0].source.schema.names
    for batch in batches:
        script.batch([{name: row[name] for name in (*names, "@partition") if name in row} for row in batch])
        if restart:
            script.restart()
    script.end()
    assert not script.late
    assert not script.quarantined
    return script


def standing(script: Script) -> Counter[tuple[tuple[str, Any], ...]]:
    """The rows that stand in the end: of each window the last pane, and rows that were not taken back."""
    stage = script.stage
    if not isinstance(stage, Plan):
        rows: Counter[tuple[tuple[str, Any], ...]] = Counter()
        for one in script.rows:
            rows[_frozen(one.row)] += one.op
        return +rows
    last: dict[Any, Row] = {}
    for pane in script.panes:
        place = (pane.key, pane.window)
        last.pop(place, None)
        if pane.op > 0:
            key = dict(zip(stage.keys, pane.key, strict=True))
            last[place] = {**key, "window_start": pane.window.start, "window_end": pane.window.end, **pane.values}
    return Counter(map(_frozen, last.values()))


def only(rows: Counter[tuple[tuple[str, Any], ...]], columns: Iterable[str]) -> list[tuple[Any, ...]]:
    """These columns of the rows, in order; numbers with a fraction to twelve digits."""
    wanted = list(columns)
    return sorted(tuple(_plain(dict(row)[name]) for name in wanted) for row in rows.elements())


def cut(rows: Sequence[Row], seed: int) -> list[list[Row]]:
    """Rows cut into batches of any size, some of them empty."""
    drawn = random.Random(seed)
    marks = sorted(drawn.choices(range(len(rows) + 1), k=drawn.randint(1, 9)))
    return [list(rows[low:high]) for low, high in zip([0, *marks], [*marks, len(rows)], strict=True)]


def out_of_order(rows: Sequence[Row], seed: int, bound: float = 3.9) -> list[Row]:
    """The same rows, each up to so many seconds later than it happened."""
    drawn = random.Random(seed)
    waits = [row["date_time"] + drawn.uniform(0, bound) * SECOND for row in rows]
    return [row for _, row in sorted(zip(waits, rows, strict=True), key=lambda pair: pair[0])]


def small_site() -> tuple[list[Row], dict[str, list[Row]]]:
    """The events of tests/conformance/nexmark/small_site.toml in order of time, and the answers to them."""
    text = (Path(__file__).parent / "small_site.toml").read_text(encoding="utf-8")
    file = tomllib.loads(text)
    people = [{**row, "event_type": 0, "email_address": "", "credit_card": "", "extra": ""}
              for row in _table(file["people"])]  # fmt: skip
    auctions = [{**row, "event_type": 1, "item_name": f"lot {row['id']}", "description": "", "extra": ""}
                for row in _table(file["auctions"])]  # fmt: skip
    bids = [{**row, "event_type": 2, "url": _address(row.pop("path"))} for row in _table(file["bids"])]
    rows = sorted((*people, *auctions, *bids), key=lambda row: row["date_time"])
    expected = {query: _table(table) for query, table in file["expected"].items()}
    return [{**row, "@partition": "0"} for row in rows], expected


def _address(path: str) -> str:
    directories, sign, known = path.partition("&")
    return f"https://www.nexmark.com/{directories}/item.htm?query=1{sign}{known}"


def _table(text: str) -> list[Row]:
    """A table whose times are seconds from the beginning."""
    types = {part.split()[0]: part.split()[1] for part in COLUMNS.split(",")}
    kept = {name: kind for name, kind in types.items() if kind == "string"}
    rows = read_table(text, {**kept, "bid_extra": "string", "channel_id": "string", "dir1": "string",
                              "dir2": "string", "dir3": "string"})  # fmt: skip
    return [{name: BEGIN + round(value * SECOND) if name in TIMES else value for name, value in row.items()}
            for row in rows]  # fmt: skip


def _frozen(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(row.items())


def _plain(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value
