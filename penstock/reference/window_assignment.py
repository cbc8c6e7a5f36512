"""Which windows take a record: aligned ones at once, sessions and custom ones after merging, event pairs by data."""

from __future__ import annotations

from collections import defaultdict

from penstock.model.windows import Custom, EventPair, Session, Window
from penstock.reference.aggregates import Record
from penstock.reference.windows import Key, Machine, Open
from penstock.runtime.batch import Counts


def take(machine: Machine, records: list[Record]) -> None:
    """Put a batch's records where they belong, or call them late."""
    by_key: dict[Key, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.partition, record.offset)):
        by_key[machine.key_of(record)].append(record)
    rule = machine.plan.window
    for key, mine in by_key.items():
        if isinstance(rule, Session):
            _sessions(machine, key, mine, rule)
        elif isinstance(rule, Custom) and rule.merging:
            _merged(machine, key, mine, rule)
        elif isinstance(rule, EventPair):
            _pairs(machine, key, mine, rule)
        else:
            _aligned(machine, key, mine)
    machine.counts += Counts(kept=len(records) - machine.counts.late)


def _aligned(machine: Machine, key: Key, records: list[Record]) -> None:
    taken: dict[Window, list[Record]] = defaultdict(list)
    for record in records:
        windows = machine.plan.window.assign(record.time)
        live = [window for window in windows if not machine.expired(window)]
        if not live:
            machine.reject(record, windows)
            continue
        machine.counts += Counts(missed=len(windows) - len(live))
        for window in live:
            taken[window].append(record)
    for window, mine in taken.items():
        windows_of = machine.windows.setdefault(key, {})
        machine.put(windows_of.setdefault(window, machine.new(window)), mine)


def _sessions(machine: Machine, key: Key, records: list[Record], rule: Session) -> None:
    """Connected components of the live sessions and the arrivals; a component lives if its end does."""
    bursts: list[tuple[Window, list[Record], list[Open]]] = [
        (open_.window, [], [open_]) for open_ in machine.windows.get(key, {}).values()
    ]
    bursts += [(rule.assign(record.time)[0], [record], []) for record in records]
    components: list[tuple[Window, list[Record], list[Open]]] = []
    for window, mine, opens in sorted(bursts, key=lambda burst: burst[0]):
        if components and window.start <= components[-1][0].end:
            whole, more, others = components[-1]
            reached = Window(whole.start, max(whole.end, window.end))
            components[-1] = (reached, more + mine, others + opens)
        else:
            components.append((window, mine, opens))
    for window, mine, opens in components:
        _settle(machine, key, window, mine, opens)


def _settle(machine: Machine, key: Key, window: Window, records: list[Record], opens: list[Open]) -> None:
    """Records and live windows that have become one window; with nothing alive in it, the records are late."""
    if not records and [open_.window for open_ in opens] == [window]:
        return
    records.sort(key=lambda record: (record.partition, record.offset))
    if not opens and machine.expired(window):
        for record in records:
            machine.reject(record, (window,))
        return
    arrived = machine.new(window)
    arrived.window = window
    machine.put(arrived, records)
    windows = machine.windows.setdefault(key, {})
    for open_ in opens:
        del windows[open_.window]
    # The arrivals are a part without a past: they come last and are never the window that survives.
    parts = [*opens, arrived] if records else opens
    windows[window] = machine.merge(window, parts) if opens else arrived


def _merged(machine: Machine, key: Key, records: list[Record], rule: Custom) -> None:
    """Windows of the user's making: assigned, then mapped from old to new."""
    assigned = [(record, rule.assign(record.time)) for record in records]
    live = machine.windows.get(key, {})
    everything = sorted(set(live) | {window for _, windows in assigned for window in windows})
    goes = rule.merge(everything)
    becoming: dict[Window, list[Open]] = defaultdict(list)
    for open_ in list(live.values()):
        becoming[goes[open_.window]].append(open_)
    taken: dict[Window, list[Record]] = defaultdict(list)
    for record, windows in assigned:
        ends = sorted({goes[window] for window in windows})
        alive = [window for window in ends if window in becoming or not machine.expired(window)]
        if not alive:
            machine.reject(record, tuple(ends))
            continue
        machine.counts += Counts(missed=len(ends) - len(alive))
        for window in alive:
            taken[window].append(record)
    held = machine.windows.setdefault(key, {})
    gone = {window: list(opens) for window, opens in becoming.items()}
    for opens in gone.values():
        for open_ in opens:
            del held[open_.window]
    for window in sorted(set(becoming) | set(taken)):
        _become(machine, held, window, gone.get(window, []), taken.get(window, []))
    if not held:
        del machine.windows[key]


def _become(machine: Machine, held: dict[Window, Open], window: Window, opens: list[Open], mine: list[Record]) -> None:
    if not mine and [open_.window for open_ in opens] == [window]:
        held[window] = opens[0]
        return
    arrived = machine.new(window)
    machine.put(arrived, mine)
    held[window] = machine.merge(window, [*opens, arrived] if mine else opens) if opens else arrived


def _pairs(machine: Machine, key: Key, records: list[Record], rule: EventPair) -> None:
    """Every event closes one window and opens the next; all live windows around it take it."""
    remembered = machine.events.setdefault(key, {})
    sure = [record for record in records if not machine.expired(rule.left(record.time))]
    makers = set(remembered) | {record.time for record in sure}
    live = {w for t in makers for w in (rule.left(t), rule.right(t)) if not machine.expired(w)}
    taken = list(sure)
    for record in records:
        if machine.expired(rule.left(record.time)):
            if any(window.start <= record.time <= window.end for window in live):
                taken.append(record)
            else:
                machine.reject(record, (rule.left(record.time),))
    before = {t: list(held) for t, held in remembered.items()}
    taken.sort(key=lambda record: (record.partition, record.offset))
    for record in taken:
        remembered.setdefault(record.time, []).append(record)
    windows = machine.windows.setdefault(key, {})
    made = {w for t in remembered for w in (rule.left(t), rule.right(t)) if not machine.expired(w)}
    for window in sorted(made | set(windows)):
        new = [record for record in taken if window.start <= record.time <= window.end]
        if window in windows:
            machine.put(windows[window], new)
            continue
        old = [r for t in sorted(before) if window.start <= t <= window.end for r in before[t]]
        if old or new:
            windows[window] = machine.new(window)
            machine.put(windows[window], old)
            machine.put(windows[window], new)
    if not windows:
        del machine.windows[key]


def forget(machine: Machine) -> None:
    """Let go of events that no window of event pairs can need any more."""
    rule = machine.plan.window
    if not isinstance(rule, EventPair):
        return
    for key, remembered in list(machine.events.items()):
        for t in [t for t in remembered if machine.expired(rule.right(t))]:
            del remembered[t]
        if not remembered:
            del machine.events[key]
