"""How does a run stand now? What was observed lately, kept up to date and bounded, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.observability.health.attention import Concern, attention, calm
from penstock.observability.health.run_state import Situation, situation
from penstock.observability.journal import Recorded, latest_of_each
from penstock.observability.observation import Observation
from penstock.observability.overview import RECENT_SECONDS, Overview, overview, recent
from penstock.storage.local import Store

MOST = 1_200  # observations that are held: ten minutes, two a second
BATCHES_TOLD = 20


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a run: its situation, what was observed in ten minutes, its numbers, and what is the matter."""

    situation: Situation
    observed: tuple[Observation, ...]
    overview: Overview | None
    concerns: tuple[Concern, ...]

    @property
    def last(self) -> Observation | None:
        """The last batch that was observed."""
        return self.observed[-1] if self.observed else None

    @property
    def said(self) -> str:
        """What is said where nothing needs attention."""
        return calm(self.observed, self.situation)

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has, of the batches a few numbers each."""
        last = self.last
        batches = [
            {
                "batch": one.batch,
                "seconds": one.seconds,
                "elapsed": one.elapsed,
                "events": one.counts.get("read", 0),
                "rows": one.rows,
                "shares": one.shares,
                "waited": one.waited,
                "replayed": one.replayed,
            }
            for one in self.observed[-BATCHES_TOLD:]
        ]
        return {
            "situation": {**asdict(self.situation), "state": self.situation.state},
            "attention": [one.plain() for one in self.concerns],
            "overview": None if self.overview is None else self.overview.plain(),
            "partitions": [] if last is None else last.partitions,
            "hot_keys": []
            if last is None
            else [dict(zip(("key", "share", "error"), one, strict=True)) for one in last.hot],
            "sinks": {} if last is None else last.sinks,
            "ledgers": {} if last is None else last.ledgers,
            "batches": batches,
        }


def look(observed: list[Observation], now: Situation) -> Look:
    """What follows from observations, in order and each batch once, and from the situation."""
    some = recent(observed)
    return Look(now, tuple(some), overview(some), tuple(attention(some, now)))


@dataclass
class Watching:
    """Follows the run of a checkpoint; holds no more than what counts."""

    store: Store
    asked: Callable[[Store], Situation] = situation
    observed: list[Observation] = field(default_factory=list)
    recorded: Recorded | None = None

    def look(self) -> Look:
        """Read what is new, and look."""
        return look(self.news(), self.asked(self.store))

    def news(self) -> list[Observation]:
        """What was observed lately, with what came since the last call; without the samples that are only drawn."""
        if self.recorded is None:
            self.recorded = Recorded(self.store)
            fresh = self.recorded.latest(RECENT_SECONDS)
        else:
            fresh = self.recorded.news()
        fresh = [replace(one, dots=[], given=[], behind=[], positions={}) for one in fresh]
        self.observed = recent(latest_of_each([*self.observed, *fresh]))[-MOST:]
        return self.observed
