"""An advice in words: all sentences are here, and nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.duration import SECOND, words
from penstock.monitor.advise import verdict as wants
from penstock.monitor.advise.advice import Advice, Recommended
from penstock.monitor.advise.verdict import Verdict
from penstock.monitor.harmless import harmless


def lines(told: Advice) -> list[str]:
    """An advice, line by line, that a terminal can be given."""
    return [harmless(line) for line in _lines(told)]


def _lines(told: Advice) -> Iterator[str]:
    how = "tried on" if told.exact else "counted while it ran:"
    yield f"{told.name}: {how} {told.events:,} events" + (f" that span {_brief(told.span)}" if told.span else "")
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
    if told.recommended is not None:
        yield from _recommended(told.recommended, told)
    yield from _verdict(told.verdict)


def _table(told: Advice) -> Iterator[str]:
    late = "late" if told.exact else "late at most"
    yield f"{'delay':>10}  {late:>12}  {'share':>8}  {'answers after':>13}  {'windows held':>12}"
    for row in told.rows:
        after = "-" if row.after_end is None else _brief(row.after_end)
        held = "-" if row.held is None else f"{'' if told.exact else '~'}{row.held:,}"
        mark = "  now" if row.now else ""
        yield f"{_brief(row.delay):>10}  {row.late:>12,}  {_share(row.share):>8}  {after:>13}  {held:>12}{mark}"


def _recommended(one: Recommended, told: Advice) -> Iterator[str]:
    rule = f'ps.bounded("{words(one.delay)}")'
    if one.tail:
        yield f'recommended: {rule} and lateness="{words(one.lateness)}"'
        yield (f"  with it {_share(one.share)} are late; to wait for nearly all would take {_brief(one.whole)}, for a "
               "few. Wait for most, and let the rest correct what was shown")  # fmt: skip
    else:
        yield f"recommended: {rule}"
        rest = f'; lateness="{words(one.lateness)}" would take those in, as corrections' if one.lateness else ""
        yield f"  with it {_share(one.share)} are late{rest}"
    if told.follows:
        yield "  the pipeline's percentile rule finds its own delay; this is where it should end up"
    elif told.current is not None and told.current == one.delay:
        yield "  that is what the pipeline has"
    elif told.current is not None:
        other = "less" if one.delay < told.current else "more"
        yield f"  the pipeline waits {_brief(told.current)}: {_brief(abs(told.current - one.delay))} {other} would do"
    if not told.exact:
        yield "  an event behind W is late only when its windows have expired: these shares are the most there can be"
        yield "  name the pipeline's file too, and each delay is tried"


def _verdict(one: Verdict) -> Iterator[str]:
    facts = one.facts
    match one.wants:
        case wants.BATCH:
            yield "a stream? No: its sources end. A batch gives the same last answers, once, and nobody has to watch it"
        case wants.NOW_AND_THEN:
            yield (f"a stream? No: events come in heaps, {_brief(facts['gap'])} apart. A run that catches up and ends, "
                   "started after each, gives the same answers and costs nothing between")  # fmt: skip
        case wants.PLAIN:
            yield "a stream? Not one with event time: each row is answered alone, and nothing is remembered"
            yield "  a plain consumer reacts in milliseconds, a micro-batch in about a second"
        case wants.SLOWER:
            yield (f"a stream? A slower one: answers change every {_brief(facts['fresh'])} at most, and a batch runs "
                   f"every {_brief(facts['batch_every'])}. One with {facts['fewer']:,} times fewer batches shows the "
                   "same")  # fmt: skip
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


def _brief(length: int) -> str:
    """A length of time to two digits or two parts, for a table."""
    if 0 < length < 10 * SECOND:
        unit, name = next(pair for pair in ((SECOND, "s"), (1_000, "ms"), (1, "us")) if length >= pair[0])
        return f"{length / unit:.2g} {name}" if length < 100 * unit else f"{round(length / unit)} {name}"
    length = round(length / SECOND) * SECOND
    said = words(length).split()
    for long, short in (("day", "d"), ("hour", "h"), ("minute", "min"), ("second", "s"), ("millisecond", "ms"),
                        ("microsecond", "us")):  # fmt: skip
        said = [short if one in (long, f"{long}s") else one for one in said]
    return " ".join(said[:4]) if length else "0 s"
