"""What does `penstock top` show: attention first, then as much of the rest as the terminal has room for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.humanize import clock, harmless, many, percent, size, span
from penstock.observability.health.concern import NOTE, URGENT, WARNING
from penstock.observability.health.watcher import Look
from penstock.observability.observation import Observation
from penstock.observability.overview import Overview, finite, lagging, name_of, results
from penstock.types.timestamps import MIN_TIME

MARKS = {URGENT: ("!!", "bold red"), WARNING: ("! ", "yellow"), NOTE: ("· ", "cyan")}
STATES = {"running": "green", "finished": "green", "stopped": "cyan", "unknown": "yellow"}
FEW = 2  # rows that a table has before another one has more
ROOMY = 36  # lines of a terminal that has room for causes and for space between tables
WORDS = 3  # lines of a concern where there is room: what, why, and what to do
MOST = 12  # rows of a table, however high the terminal

Section = Callable[[Look, int], RenderableType]


def whole(look: Look) -> RenderableType:
    """All of it, one under the other, for a terminal that scrolls or a file."""
    made = [head(look), Text(), attention(look, 0, False), Text(), numbers(look)]
    for section, rows in _sections(look):
        if rows:
            made += [Text(), section(look, MOST)]
    return Group(*made)


def fitting(look: Look, height: int) -> RenderableType:
    """As much as fits: what is the matter and the numbers always, then the tables, each with fewer rows if it must."""
    roomy = height >= ROOMY
    said = max(2, height // 4)
    apart = [Text()] if roomy else []
    made: list[RenderableType] = [head(look), *apart, attention(look, said, not roomy), *apart, numbers(look)]
    used = 2 + 2 * len(apart) + _lines_of_attention(look, said, not roomy) + _lines_of_numbers(look)
    for section, rows in _placed(look, height - used, len(apart)):
        made += [*apart, section(look, rows)]
        used += len(apart) + 1 + rows
    return Group(*made, *[Text()] * max(0, height - used), Text("q ends the view, not the run", "dim"))


def _placed(look: Look, lines: int, apart: int) -> list[tuple[Section, int]]:
    """The tables that find room, and how many rows of each: first a few of each, then more of those that come first."""
    chosen: list[tuple[Section, int, int]] = []
    for section, rows in _sections(look):
        few = min(rows, FEW, lines - apart - 1)
        if few > 0:
            chosen.append((section, rows, few))
            lines -= apart + 1 + few
    placed = []
    for section, rows, few in chosen:
        more = min(rows, MOST) - few
        placed.append((section, few + min(more, lines)))
        lines -= min(more, lines)
    return placed


def _sections(look: Look) -> list[tuple[Section, int]]:
    last = look.last
    if last is None:
        return []
    return [
        (partitions, len(last.partitions)),
        (batches, len(look.observed)),
        (sinks, len(last.ledgers or last.sinks)),
        (hot_keys, min(len(last.hot), 5)),
    ]


def head(look: Look) -> RenderableType:
    """Whose run it is, how it is situated, and how old the numbers are."""
    now = look.situation
    made = Text.assemble((harmless(now.name), "bold"), "  ", (now.state, STATES.get(now.state, "bold red")))
    if look.last is not None:
        old = time.time() - look.last.wall
        made.append(f"  batch {look.last.batch:,}, {span(max(0.0, old) * 1e6)} ago", "dim")
    made.append(f"  {now.who}" if not now.ended else "", "dim")
    made.no_wrap, made.overflow = True, "ellipsis"
    return made


def attention(look: Look, lines: int, short: bool) -> RenderableType:
    """What is the matter, most urgent first; with the cause and what to do below, where there is room."""
    if not look.concerns:
        return Text(look.said, "green", no_wrap=bool(lines), overflow="ellipsis")
    each = 1 if short else WORDS
    shown = look.concerns if not lines else look.concerns[: max(1, lines // each)]
    made = []
    for one in shown:
        mark, style = MARKS[one.level]
        made.append(Text(f"{mark} {harmless(one.what)}", style))
        if not short:
            made += [Text(f"   {_plain(said)}", "dim") for said in (one.why, one.instead)]
    if len(shown) < len(look.concerns):
        made.append(Text(f"   and {len(look.concerns) - len(shown)} more", "dim"))
    if lines:
        for text in made:
            text.no_wrap, text.overflow = True, "ellipsis"
    return Group(*made)


def _plain(said: str) -> str:
    return harmless(said.replace("`", "")).rstrip(".")


def _lines_of_attention(look: Look, lines: int, short: bool) -> int:
    each = 1 if short else WORDS
    shown = min(len(look.concerns), max(1, lines // each))
    return max(1, shown * each + (1 if shown < len(look.concerns) else 0))


def numbers(look: Look) -> RenderableType:
    """The overview, two to a line; below it batches, which need a line of their own where a terminal is narrow."""
    if look.overview is None:
        return Text("no batch was observed yet", "dim")
    table = Table.grid(padding=(0, 2))
    told = _told(look.overview)
    for place in (0, 1):
        table.add_column(style="cyan", no_wrap=True, min_width=max(len(name) for name, _ in told[place::2]))
        table.add_column(no_wrap=True, overflow="ellipsis")
    for place in range(0, len(told), 2):
        _add(table, *told[place], *(told[place + 1] if place + 1 < len(told) else ("", "")))
    one = look.overview
    shares = ", ".join(f"{part} {100 * share:.0f}" for part, share in one.shares.items())
    took = f"{span(one.last_batch_seconds * 1e6)}, median {span(one.batch_seconds * 1e6)}: {shares} %"
    wide = max(len(name) for name, _ in told[::2])
    return Group(table, Text.assemble(("batch".ljust(wide), "cyan"), f"  {took}", no_wrap=True, overflow="ellipsis"))


def _lines_of_numbers(look: Look) -> int:
    return 1 if look.overview is None else 1 + -(-len(_told(look.overview)) // 2)


def _told(one: Overview) -> list[tuple[str, str]]:
    behind = "" if one.behind is None else f", {span(one.behind)} behind"
    held = "" if one.held_back is None else f" by {span(one.held_back)}"
    bytes_ = "" if one.state_bytes is None else f", {size(one.state_bytes)}"
    checkpoint = "not known" if one.checkpoint_bytes is None else size(one.checkpoint_bytes)
    return [
        ("events", f"{one.events:,}, {one.events_per_second:,.0f}/s"),
        ("watermark", f"{clock(one.watermark)}{behind}"),
        ("panes", f"{one.panes:,}, {one.panes_per_second:,.0f}/s"),
        ("slowest", f"{harmless(one.laggard or 'none')}{held}"),
        ("late", f"{one.late:,}, {percent(one.late_share)} lately"),
        ("lag", "no log tells" if one.lag is None else many(one.lag, "row")),
        ("quarantined", f"{one.quarantined:,}, {percent(one.quarantined_share)} lately"),
        ("partitions", f"{one.partitions:,}, {one.idle_partitions:,} idle"),
        ("state", f"{many(one.state_rows, 'row')}{bytes_}"),
        ("checkpoint", checkpoint),
    ]


def _table(*columns: str) -> Table:
    """A table whose first column is a name and whose others are numbers."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="cyan", show_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", no_wrap=True, overflow="ellipsis")
    return table


def _add(table: Table, *cells: str | Text) -> None:
    """A row whose cells are taken as they are: in a plain string brackets would be read as styles."""
    table.add_row(*[Text(one) if isinstance(one, str) else one for one in cells])


def partitions(look: Look, rows: int) -> RenderableType:
    """The partitions, those that are furthest behind first; the one that the watermark waits for is marked."""
    last = look.observed[-1]
    table = _table("partition", "watermark", "behind", "silent", "lag", "to log", "from log", "")
    slowest = lagging(last)[0]
    order = sorted(last.partitions, key=lambda one: (one["idle"], one["watermark"], name_of(one)))
    for one in order[:rows]:
        name = name_of(one)
        note = Text("idle", "dim") if one["idle"] else Text("slowest", "yellow") if name == slowest else Text()
        lag = "" if one.get("lag") is None else f"{one['lag']:,}"
        skew = ["" if one.get(way) is None else span(one[way]) for way in ("to_log", "from_log")]
        silent = span(one["silent_for"]) if one["silent_for"] else ""
        _add(table, harmless(name), clock(one["watermark"]), _behind(last, one), silent, lag, *skew, note)
    return table


def _behind(last: Observation, one: dict[str, Any]) -> str:
    return span(last.now - one["watermark"]) if finite(one["watermark"]) and one["watermark"] > MIN_TIME else ""


def batches(look: Look, rows: int) -> RenderableType:
    """The last batches, the newest first: how long each took, and where the time went."""
    table = _table("batch", "took", "events", "panes", "late", "read", "step", "sinks", "waiting", "")
    for one in reversed(look.observed[-rows:]):
        shares = [percent(one.shares.get(part, 0.0)) for part in ("read", "step", "sinks", "waiting")]
        _add(
            table,
            f"{one.batch:,}",
            span(one.seconds * 1e6),
            f"{one.counts.get('read', 0):,}",
            f"{results(one):,}",
            f"{one.counts.get('late', 0):,}",
            *shares,
            "again" if one.replayed else "",
        )
    return table


def hot_keys(look: Look, rows: int) -> RenderableType:
    """The keys with the largest shares."""
    table = _table("key", "share", "at least")
    for key, share, error in look.observed[-1].hot[:rows]:
        _add(table, harmless(str(key)), percent(share), percent(max(0.0, share - error)))
    return table


def sinks(look: Look, rows: int) -> RenderableType:
    """The sinks: what the checkpoint gave each last, and what its own ledger has."""
    last = look.observed[-1]
    table = _table("sink", "given", "ledger", "rows", "")
    for name in sorted(last.ledgers or last.sinks)[:rows]:
        held = last.ledgers.get(name, {})
        given, has = last.sinks.get(name), held.get("batch")
        note = Text("had it already", "cyan") if held.get("had") else Text()
        if given is not None and has is not None and given != has:
            note = Text("differs", "bold red")
        ledger = "keeps none" if not held.get("ledgered", True) else "" if has is None else f"{has:,}"
        _add(
            table,
            harmless(name),
            "" if given is None else f"{given:,}",
            ledger,
            "" if held.get("rows") is None else f"{held['rows']:,}",
            note,
        )
    return table
