"""An explanation in words: all sentences are here, and nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from penstock.humanize import harmless
from penstock.model.windows import Window
from penstock.observability.why import event_fate, trigger_reasons, watermark_drivers
from penstock.observability.why.event_fate import EventWhy
from penstock.observability.why.from_samples import SampledEvent, SampledPane, SampledWindow
from penstock.observability.why.panes import Event, KeyWhy, PaneWhy, WindowWhy
from penstock.observability.why.trigger_reasons import Because
from penstock.observability.why.watermark_drivers import Driver, Saves
from penstock.types.durations import words
from penstock.types.timestamps import MAX_TIME, MIN_TIME, show

EVENTS = 20  # of a pane that are listed; JSON has them all
Told = WindowWhy | KeyWhy | EventWhy | SampledWindow | SampledEvent


def lines(told: Told) -> list[str]:
    """An explanation, line by line, that a terminal can be given."""
    makers = {WindowWhy: _window, KeyWhy: _key, EventWhy: _event, SampledWindow: _sampled, SampledEvent: _sampled_event}
    return [harmless(line) for line in makers[type(told)](told)]  # type: ignore[operator]


def _window(told: WindowWhy) -> Iterator[str]:
    yield f"{_of(told.key)}window {told.window}: {_ends(told.complete_at, told.expires_at)}"
    for pane in told.panes:
        yield from _pane(pane, told.window)
    if not told.panes:
        yield "  no pane was shown"
    if told.open_records is not None:
        yield f"still held: {_many(told.open_records, 'event')}, {len(told.unshown)} of them in no pane yet"
        yield from _events(told.unshown)
    if told.late:
        yield f"late: {_many(len(told.late), 'event')} came when it took no more; ask --event about one of them"
        yield from _events(told.late)
    yield f"played again: batches {told.batches}, {_many(told.read, 'event')} read"


def _ends(complete: int, expires: int) -> str:
    if complete >= MAX_TIME:
        return "complete when the input ends"
    corrected = f", takes corrections until W is {_at(expires)}" if expires > complete else ", and takes no corrections"
    return f"complete when W is {_at(complete)}{corrected}"


def _pane(pane: PaneWhy, window: Window) -> Iterator[str]:
    of = "" if pane.window == window else f" of the window {pane.window}, which is now a part of this one"
    final = ", final" if pane.final else ""
    if pane.index is None:
        yield f"withdrawal{of}"
    else:
        yield f"pane {pane.index}{of}, {_timing(pane.timing)}{final}: {pane.text}"
    yield f"  batch {pane.batch}, now {_at(pane.now)}; W was {_at(pane.watermark)}{_next(pane.next_watermark)}"
    for one in pane.because:
        yield f"  {_because(one, pane)}"
    for gone in pane.withdrawn:
        yield f"  withdrew pane {gone.index} of the window {gone.window}: {gone.text}"
    yield f"  new in it: {_many(len(pane.new), 'event')}, of {pane.records:,} in the window"
    yield from _events(pane.new)


def _because(one: Because, pane: PaneWhy) -> str:
    part = f"the {one.part} part fired" if one.part in ("early", "late") else "it fired"
    facts = one.facts
    match one.kind:
        case trigger_reasons.WATERMARK:
            return f"on time: W had reached the end of the window, {_at(pane.window.end)}"
        case trigger_reasons.NEW:
            return f"{part}: something was new after the on-time pane"
        case trigger_reasons.COUNTED:
            return f"{part}: {_many(facts['new'], 'event')} new, and {facts['wanted']} asked for ({one.rule})"
        case trigger_reasons.WAITED | trigger_reasons.TICKED:
            first, due = _at(facts["first_at"]), _at(facts["due_at"])
            return f"{part}: something was new since {first}, and it was due at {due} ({one.rule})"
        case trigger_reasons.HELD:
            return f"{part}: the answer satisfied it ({one.rule})"
        case trigger_reasons.UNSHOWN:
            return f"last pane: the window expired with {_many(facts['new'], 'event')} that no pane had shown"
    return "last pane: the window expired"


def _key(told: KeyWhy) -> Iterator[str]:
    yield f"{_of(told.key)}windows in the batches {told.batches}:"
    for window, panes in told.windows.items():
        yield f"  --window '{window}'  {_many(panes, 'pane')}"


def _event(told: EventWhy) -> Iterator[str]:
    event, came = told.event, f"batch {told.batch}, now {_at(told.now)}; W was {_at(told.watermark)}"
    if told.fate in (event_fate.QUARANTINED, event_fate.FILTERED):
        yield f"{event.partition} offset {event.offset}: {event.text}"
        yield f"  {came}"
        yield f"  quarantined: {told.reason}" if told.reason else "  filtered out by a where of the pipeline"
        return
    yield f"{_of(told.key)}{_line(event)}"
    yield f"  {came}"
    if told.fate == event_fate.TAKEN:
        behind = f"{words(told.late_by)} behind W, but " if told.late_by > 0 and told.watermark > MIN_TIME else ""
        yield f"  not late: {behind}taken by {_windows(one.window for one in told.places if one.taken)}"
        missed = [one.window for one in told.places if not one.taken]
        if missed:
            yield f"  too late for {_windows(missed)}, which had expired"
        return
    yield f"  late: {_behind(told.late_by, told.watermark)}; missed {_windows(one.window for one in told.places)}"
    last = max(told.places, key=lambda one: one.expires_at)
    yield f"  the last of these took events while W was below {_at(last.expires_at)}"
    if told.driver is not None:
        yield f"  {_driver(told.driver, told)}"
    if told.saves is not None:
        yield from (f"  {line}" for line in _saves(told.saves))


def _driver(one: Driver, told: EventWhy) -> str:
    if one.kind == watermark_drivers.FORGOTTEN:
        return "W had passed that before the batches that are kept: how is not known any more"
    passed = f"W passed that in batch {one.batch}, at {_at(one.now or 0)}"
    own, slowest = told.event.partition, one.slowest
    led = "" if slowest is None else f"{slowest.source}/{slowest.partition}"
    match one.kind:
        case watermark_drivers.ENDED:
            return f"{passed}: the input had ended, and every window was closed"
        case watermark_drivers.SAID:
            return f"{passed}: the rows, or the processing clock, said so"
        case watermark_drivers.UNKNOWN:
            return f"{passed}: {own} had brought no event yet and was not waited for; {led or 'others'} drove W"
        case watermark_drivers.SILENT:
            return f"{passed}: every partition was silent, and W is let go on by silence"
        case watermark_drivers.ASIDE:
            silent = words(one.own.silent_for) if one.own is not None else ""
            return f"{passed}: {own} had been silent for {silent} and stepped aside; {led} drove W"
    ahead = f"{passed}: its own partition was ahead"
    if told.newest is not None:
        newest = told.newest
        ahead += f", by offset {newest.offset} of {_at(newest.event_time)}"
    return ahead + (f"; {led} was the slowest and past it, too" if led and led != own else "")


def _saves(one: Saves) -> Iterator[str]:
    ways = []
    if one.delay is not None:
        ways.append(f"a {one.knob} of more than {words(one.delay)}")
    if one.lateness < MAX_TIME:
        ways.append(f"a lateness of more than {words(one.lateness)}")
    if one.idle is not None:
        ways.append(f"an idle of more than {words(one.idle)}")
    yield (
        f"what would have saved it: {', or '.join(ways)}"
        if ways
        else "nothing would have saved it: the input had ended"
    )


def _sampled(told: SampledWindow) -> Iterator[str]:
    yield f"{_of((told.key,))}window {told.window}: what was kept of it, a sample"
    for pane in told.panes:
        yield from _sampled_pane(pane)
    yield f"of the batches of these panes {told.kept:,} of {_many(told.shown, 'pane')} were kept"
    yield f"{_many(len(told.events), 'event')} of that key and time were kept; others may be in it"
    yield from _events(told.events)
    if told.late:
        yield f"late among those that were kept: {_many(len(told.late), 'event')}"
        yield from _events(told.late)
    yield f"kept: batches {told.batches}. Name the pipeline's file too, and its events are read again, all of them"


def _sampled_pane(pane: SampledPane) -> Iterator[str]:
    final, gone = ", final" if pane.final else "", "withdrawal of " if pane.op < 0 else ""
    yield f"{gone}pane {pane.index}, {_timing(pane.timing)}{final}: {pane.text}"
    yield f"  batch {pane.batch}, now {_at(pane.now)}; W was {_at(pane.watermark)}{_next(pane.next_watermark)}"


def _sampled_event(told: SampledEvent) -> Iterator[str]:
    yield f"{_of((told.key,)) if told.key else ''}{_line(told.event)}"
    yield f"  batch {told.batch}, now {_at(told.now)}; W was {_at(told.watermark)}"
    if told.fate == event_fate.QUARANTINED:
        yield f"  quarantined: {told.reason}"
    elif told.fate == event_fate.LATE:
        missed = f"; missed {_windows(told.windows)}" if told.windows else ""
        yield f"  late: {_behind(told.late_by, told.watermark)}{missed}"
    else:
        yield "  it was read; whether a window took it is not kept"
    for one in told.partitions:
        newest = "no event yet" if one["newest"] is None else f"newest event {_at(one['newest'])}"
        idle = ", had stepped aside" if one["idle"] else ""
        yield f"  before that batch {one['source']}/{one['partition']}: {newest}, W of it {_at(one['watermark'])}{idle}"
    yield "  from a sample. Name the pipeline's file too, and it is played again"


def _events(events: Sequence[Event]) -> Iterator[str]:
    for event in events[:EVENTS]:
        yield f"    {_line(event)}"
    if len(events) > EVENTS:
        yield f"    and {len(events) - EVENTS:,} more"


def _line(event: Event) -> str:
    taken_back = "taken back: " if event.op < 0 else ""
    time = "without a time" if event.event_time <= MIN_TIME else f"at {_at(event.event_time)}"
    return f"{taken_back}{event.partition} offset {event.offset}, {time}" + (f": {event.text}" if event.text else "")


def _windows(windows: Iterable[Window]) -> str:
    return ", ".join(str(one) for one in sorted(windows))


def _of(key: tuple[str, ...]) -> str:
    return f"key {' · '.join(key)}, " if key else ""


def _next(watermark: int | None) -> str:
    return "" if watermark is None else f", and {_at(watermark)} after it"


def _timing(timing: str) -> str:
    return timing.replace("_", " ")


def _at(instant: int) -> str:
    return {MIN_TIME: "none yet", MAX_TIME: "the end"}.get(instant) or show(instant)


def _behind(length: int, watermark: int) -> str:
    return "it came after the end of the input" if watermark >= MAX_TIME else f"{words(length)} behind W"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
