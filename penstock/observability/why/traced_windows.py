"""The reference's windows, watched: which records are in each, which were new in each pane, and which were too late."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.panes import Pane
from penstock.model.windows import Window
from penstock.observability.why.trigger_reasons import Because, last_reasons, reasons
from penstock.reference import triggers as when
from penstock.reference.aggregates import Record
from penstock.reference.windows import Key, Machine, Open


@dataclass
class Held(Open):
    """A window that knows its records, and those no pane has shown yet."""

    members: list[Record] = field(default_factory=list)
    fresh: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fired:
    """A pane and how it came: `pane` is None where only others were withdrawn."""

    batch: int
    now: int
    watermark: int
    key: Key
    window: Window
    pane: Pane | None
    withdrawn: tuple[Pane, ...]
    new: tuple[Record, ...]
    members: tuple[Record, ...]
    because: tuple[Because, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was late, and the windows it missed."""

    batch: int
    watermark: int
    record: Record
    windows: tuple[Window, ...]


@dataclass
class Watched(Machine):
    """Windows that tell what was done in them."""

    batch: int = 0
    fired: list[Fired] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    taken: dict[tuple[str, int], list[Window]] = field(default_factory=dict)

    def sight(self, key: Key, open_: Open) -> when.Sight:
        """What a trigger sees; the memory with which it looked is kept, for firing changes it."""
        self.memory, self.seen = open_.trigger, super().sight(key, open_)
        return self.seen

    def fire(self, key: Key, open_: Open, final: bool) -> None:
        """Show a pane, and remember what made it."""
        assert isinstance(open_, Held)
        if final:
            self.sight(key, open_)  # a window that holds something unshown is not looked at before it goes
        why = (last_reasons if final else reasons)(self.plan.trigger, self.memory, self.seen)
        before = len(self.panes)
        super().fire(key, open_, final)
        made = self.panes[before:]
        pane = next((one for one in made if one.op > 0), None)
        withdrawn = tuple(one for one in made if one.op < 0)
        self.fired.append(
            Fired(
                self.batch,
                self.now,
                self.watermark,
                key,
                open_.window,
                pane,
                withdrawn,
                tuple(open_.fresh),
                tuple(open_.members),
                tuple(why),
            )
        )
        open_.fresh = []

    def new(self, window: Window) -> Open:
        """A window without records."""
        made = super().new(window)
        return Held(made.window, made.trigger, made.held, made.born_late)

    def put(self, open_: Open, records: list[Record]) -> None:
        """Add records to a window."""
        assert isinstance(open_, Held)
        super().put(open_, records)
        open_.members += records
        open_.fresh += records
        for one in records:
            self.taken.setdefault((one.partition, one.offset), []).append(open_.window)

    def merge(self, window: Window, parts: list[Open]) -> Open:
        """One window made of several."""
        merged = super().merge(window, parts)
        assert isinstance(merged, Held)
        for part in parts:
            assert isinstance(part, Held)
            merged.members += part.members
            merged.fresh += part.fresh
        return merged

    def reject(self, record: Record, windows: tuple[Window, ...]) -> None:
        """A record that no window takes any more."""
        super().reject(record, windows)
        self.rejected.append(Rejected(self.batch, self.watermark, record, windows))
