"""An advice in words: all sentences are here, and nothing is computed here."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from penstock.humanize import harmless, many
from penstock.observability.advise import verdict as wants
from penstock.observability.advise.goals import WINDOWS
from penstock.observability.advise.report import Advice, Recommended
from penstock.observability.advise.verdict import Verdict
from penstock.types.durations import SECOND, words


def lines(told: Advice, width: int | None = None) -> list[str]:
    """An advice, line by line, that a terminal can be given; no line is wider than it where its width is known."""
    plain = [harmless(line) for line in _lines(told)]
    return plain if width is None else [part for line in plain for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return [line] if len(line) <= width else textwrap.wrap(line, width, subsequent_indent=f"{indent}  ")


def _lines(told: Advice) -> Iterator[str]:
    how = "tried on" if told.exact else "counted while it ran:"
    batches = f", in {many(told.batches, 'batch', 'batches')}" if told.exact else ""
    yield (
        f"{told.name}: {how} {told.events:,} events"
        + (f" that span {_brief(told.span)}" if told.span else "")
        + batches
    )
    yield "behind the newest of their partition: " + ", ".join(
        f"{name} {_brief(length)}" for name, length in told.lateness.items()
    )
    if len(told.partitions) > 1:
        name, high, longest = told.partitions[0]
        yield f"the latest come from {name}: p99 {_brief(high)}, max {_brief(longest)}"
    if told.rows:
        yield ""
        yield from _table(told)
        yield ""
        yield from _meaning(told)
        yield ""
    if told.recommended is not None:
        yield from _recommended(told.recommended, told)
    elif told.rows:
        yield from _not_enough(told)
    yield from _verdict(told.verdict)


def _table(told: Advice) -> Iterator[str]:
    """The delays; where each was played, also what nine windows in ten held."""
    least, most = ("", "") if told.exact else (" at least", " at most")
    worst = f"{'9 in 10':>9}" if told.exact else ""
    yield (
        f"{'delay':>10}  complete{least}{worst}  {'late' + most:>12}  {'share':>8}  {'answers after':>13}  {'held':>6}"
    )
    for row in told.rows:
        after = "-" if row.after_end is None else _brief(row.after_end)
        held = "-" if row.held is None else f"{'' if told.exact else '~'}{row.held:,}"
        complete = f"{_floor(row.complete if row.tells else None):>{len(least) + 8}}"
        worst = f"{_floor(row.worst if row.tells else None):>9}" if told.exact else ""
        yield (
            f"{_brief(row.delay):>10}  {complete}{worst}  {row.late:>12,}  {_share(row.share):>8}  {after:>13}"
            f"  {held:>6}{' now' if row.now else ''}"
        )


def _meaning(told: Advice) -> Iterator[str]:
    if not told.exact or told.endless:
        return
    first = told.rows[0]
    yield (
        "complete: of all rows that came for a window, however late, the share that its on-time pane held; nine "
        "windows in ten held the share beside it, or more"
    )
    out = [f"{told.before:,} began before the recording"] if told.before else []
    out += (
        [
            f"{first.open:,} were open at its end, or ended less than {_brief(told.settling)} before it"
            if told.settling
            else f"{first.open:,} were open at its end"
        ]
        if first.open
        else []
    )
    yield f"{many(first.windows or 0, 'window')} counted" + (f"; left out: {', '.join(out)}" if out else "")
    if any(not row.tells for row in told.rows) and first.tells:
        yield "a longer delay leaves more windows open; where too few are left, nothing is said of them"


def _not_enough(told: Advice) -> Iterator[str]:
    first = told.rows[0]
    if told.endless:
        yield "no delay is recommended: a global window has no end, so that no pane of it is on time and no row late"
        return
    yield (
        f"not enough to tell how complete on-time panes are: {many(first.windows or 0, 'window')} with "
        f"{many(first.rows or 0, 'row')} can be looked at, and {WINDOWS} with {told.goals.rows:,} "
        "are needed"
    )
    yield "  let the sources have more events first, or have more of them tried: --rows"


def _recommended(one: Recommended, told: Advice) -> Iterator[str]:
    waited = "" if one.after_end is None else f", and come {_brief(one.after_end)} after its end"
    lateness = f' and lateness="{words(one.lateness)}"' if one.lateness else ""
    yield f"recommended: {_rule(one.delay)}{lateness}"
    yield f"  on-time panes hold {_most(told)}{_floor(one.complete)} of their window's rows{waited}"
    if one.lateness:
        taken = f"all but {_share(one.left)}" if one.left else "those"
        yield f"  {_share(one.share)} of the events are late; that lateness takes {taken} in, as corrections"
    else:
        yield f"  {_share(one.share)} of the events are late"
    if one.tail:
        yield f"  to wait for nearly all would take {_brief(one.whole)}, for a few: let those correct what was shown"
    if one.sooner is not None and one.sooner.complete is not None:
        yield f"  {_floor(one.sooner.complete)} would be there far sooner, with {_rule(one.sooner.delay)}"
    yield from _unmet(one, told)
    if told.follows:
        yield "  the pipeline's percentile rule finds its own delay; this is where it should end up"
    elif told.current is not None and told.current == one.delay:
        yield "  that is what the pipeline has"
    elif told.current is not None:
        other = "less would do" if one.delay < told.current else "more are wanted"
        yield f"  the pipeline waits {_brief(told.current)}: {_brief(abs(told.current - one.delay))} {other}"
    if not told.exact:
        yield "  an event behind W is late only when its windows have expired: these shares are the most there can be"
        yield "  name the pipeline's file too, and each delay is tried"


def _most(told: Advice) -> str:
    return "" if told.exact else "at least "


def _unmet(one: Recommended, told: Advice) -> Iterator[str]:
    """The goals that are missed: which of them cannot be had together, and the nearest that can be had."""
    goals = told.goals
    if "complete" in one.unmet and goals.latency is not None and one.instead is not None:
        there = one.instead
        after = "" if there.after_end is None else f", with which they come {_brief(there.after_end)} after the end"
        yield (
            f"  cannot be had together: {_floor(goals.complete)} complete takes {_rule(there.delay)}{after}; within "
            f"{_brief(goals.latency)} it is {_floor(one.complete)} at most"
        )
    elif "complete" in one.unmet:
        blind = any(not row.tells for row in told.rows)
        which = "no delay of which enough windows were over" if blind else "no delay"
        yield f"  cannot be had: {which} makes on-time panes {_floor(goals.complete)} complete; this one comes nearest"
    if "latency" in one.unmet and goals.latency is not None:
        soonest = min(row.after_end for row in told.rows if row.after_end is not None)
        yield (
            f"  cannot be had: an answer within {_brief(goals.latency)}; without any delay it comes "
            f"{_brief(soonest)} after the end, for the slowest partition is waited for"
        )
    if "late" in one.unmet and goals.late is not None:
        yield f"  cannot be had: no more than {_share(goals.late)} late; this comes nearest"


def _verdict(one: Verdict) -> Iterator[str]:
    facts = one.facts
    match one.wants:
        case wants.BATCH:
            yield "a stream? No: its sources end. A batch gives the same last answers, once, and nobody has to watch it"
        case wants.NOW_AND_THEN:
            yield (
                f"a stream? No: events come in heaps, {_brief(facts['gap'])} apart. A run that catches up and ends, "
                "started after each, gives the same answers and costs nothing between"
            )
        case wants.PLAIN:
            yield "a stream? Not one with event time: each row is answered alone, and nothing is remembered"
            yield "  a plain consumer reacts in milliseconds, a micro-batch in about a second"
        case wants.SLOWER:
            yield (
                f"a stream? A slower one: answers change every {_brief(facts['fresh'])} at most, and a batch runs "
                f"every {_brief(facts['batch_every'])}. One with {facts['fewer']:,} times fewer batches shows the "
                "same"
            )
        case _:
            yield "a stream? Yes" + _because(one)
    for line in one.instead:
        yield f"  {line}"


def _because(one: Verdict) -> str:
    rate, fresh = one.facts["rate"], one.facts["fresh"]
    said = [] if rate is None else [f"{rate:,.1f} events a second come" if rate >= 0.1 else "events come all the time"]
    said += [] if fresh is None else [f"answers change every {_brief(fresh)}"]
    return f": {', and '.join(said)}" if said else ""


def _share(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _floor(share: float | None) -> str:
    """A share rounded down, so that nothing seems to be reached that is not.

    >>> _floor(0.98999), _floor(0.99), _floor(1.0), _floor(None)
    ('98.99 %', '99.00 %', '100 %', '-')
    """
    if share is None or share == 1:
        return "-" if share is None else "100 %"
    return f"{math.floor(round(10_000 * share, 6)) / 100:.2f} %"


def _rule(delay: int) -> str:
    """The watermark to write."""
    return f'ps.bounded("{delay / SECOND:g} seconds")' if 0 < delay < 10 * SECOND else f'ps.bounded("{words(delay)}")'


def _brief(length: int) -> str:
    """A length of time to two digits or two parts, for a table."""
    if 0 < length < 10 * SECOND:
        unit, name = next(pair for pair in ((SECOND, "s"), (1_000, "ms"), (1, "us")) if length >= pair[0])
        return f"{length / unit:.2g} {name}" if length < 100 * unit else f"{round(length / unit)} {name}"
    length = round(length / SECOND) * SECOND
    said = words(length).split()
    for long, short in (
        ("day", "d"),
        ("hour", "h"),
        ("minute", "min"),
        ("second", "s"),
        ("millisecond", "ms"),
        ("microsecond", "us"),
    ):
        said = [short if one in (long, f"{long}s") else one for one in said]
    return " ".join(said[:4]) if length else "0 s"
