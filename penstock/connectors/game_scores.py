"""The game scores of *Streaming Systems*, made up as they are read: any rate, any disorder, any fault, replayable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from penstock.api.stream import Stream
from penstock.connectors.source import MAX_ROWS, TASKS, Chunk, Offsets, Split, source
from penstock.errors import PlanError
from penstock.types import timestamps
from penstock.types.durations import SECOND, Duration, not_negative, positive

COLUMNS = "user string, team string, points long, at timestamp"
BEGIN = "2026-01-01T00:00:00Z"
SMALL = 100_000  # rows for which a second task does not pay
UNASKED = 100_000  # rows a batch where nobody says how many and the source has no end
MOST = {"rate": 10**9, "keys": 10**7, "teams": 10**5, "partitions": 10**4, "events": 10**12}
Silences = tuple[tuple[int, int, int | None], ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong with the scores: shares are between 0 and 1, all of them 0 by default.

    >>> faults = Faults(stragglers=0.01, straggler_delay="2 minutes", silent={1: ("20 seconds", "15 seconds")})
    """

    stragglers: float = 0.0
    straggler_delay: Duration = "1 minute"
    silent: Mapping[int, tuple[Duration, Duration | None]] = field(default_factory=dict)
    bad: float = 0.0
    hot: float = 0.0


@dataclass(frozen=True, slots=True)
class GameScores:
    """What row i of partition p is: a pure function of the seed, p and i, and of nothing else.

    A position is how much time has passed since the beginning, in microseconds, and when the beginning was.
    """

    rate: int
    keys: int
    teams: int
    partitions_made: int
    disorder: int
    straggler_share: float
    straggler_delay: int
    silences: Silences
    bad_share: float
    hot_share: float
    seed: int
    start_at: int | None
    events: int | None
    realtime: bool
    tasks: int | None = None
    kind = "gamescores"  # stands in checkpoints

    def start(self) -> Offsets:
        """The beginning; in real time the first batch says when it was."""
        return {"begin": self.start_at, "elapsed": 0, "since": None}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """As far as the clock has come, or in no time at all as far as is asked."""
        elapsed = int(since["elapsed"])
        began = now if since["since"] is None else int(since["since"])
        begin = began if since["begin"] is None else int(since["begin"])
        if limit is None and self.events is None and not self.realtime:
            limit = UNASKED
        ends = [] if limit is None else [elapsed + max(1, limit * SECOND // self.rate)]
        if self.realtime:
            ends.append(now - began)
        if self.events is not None:
            ends.append(self._end())
        return {"begin": begin, "elapsed": max(elapsed, min(ends)), "since": began}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """Runs of rows, about equally many in each piece."""
        spans = [(p, self.made(p, since["elapsed"]), self.made(p, upto["elapsed"])) for p in self._all()]
        total = sum(end - first for _, first, end in spans)
        pieces = max(1, min(self.tasks or TASKS, -(-total // SMALL)))
        cuts = [total * k // pieces for k in range(pieces + 1)]
        made = [_within(spans, low, high) for low, high in pairwise(cuts)]
        return [{"begin": upto["begin"], "rows": rows} for rows in made if rows]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of a piece, made now."""
        from penstock.connectors.game_scores_rows import score_rows

        for partition, first, end in split["rows"]:
            for low in range(first, end, MAX_ROWS):
                yield score_rows(self, partition, range(low, min(low + MAX_ROWS, end)), split["begin"])

    def partitions(self, at: Offsets) -> list[str]:
        """All of them: they are known from the beginning."""
        return [str(p) for p in self._all()]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """Those with rows that were made by now; in no time at all, those that are not silent or at their end."""
        elapsed = int(at["elapsed"])
        if self.realtime:
            reached = 0 if at["since"] is None else now - int(at["since"])
        else:
            reached = elapsed + max(1, -(-self.partitions_made * SECOND // self.rate))
        return [str(p) for p in self._all() if self.made(p, reached) > self.made(p, elapsed)]

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether all events there are to be have been made."""
        return self.events is not None and int(at["elapsed"]) >= self._end()

    def made(self, partition: int, elapsed: int) -> int:
        """How many rows of a partition have arrived when so much time has passed."""
        for _, after, lasting in self._silence(partition):
            if elapsed > after:
                elapsed = after if lasting is None else max(after, elapsed - lasting)
        rows = ((elapsed * self.rate - 1) // SECOND - partition) // self.partitions_made + 1
        return max(0, min(rows, self._share(partition)))

    def paused(self, partition: int) -> tuple[int, int]:
        """The first row after a partition's silence, and how long that was."""
        for _, after, lasting in self._silence(partition):
            if lasting is not None:
                return self.made(partition, after), lasting
        return 0, 0

    def _silence(self, partition: int) -> Silences:
        return tuple(silence for silence in self.silences if silence[0] == partition)

    def _share(self, partition: int) -> int:
        if self.events is None:
            return 2**62
        return (self.events - partition + self.partitions_made - 1) // self.partitions_made

    def _end(self) -> int:
        """How much time passes until the last row has arrived; one that is silent for ever does not count."""
        longest = max((lasting for _, _, lasting in self.silences if lasting is not None), default=0)
        return -(-(self.events or 0) * SECOND // self.rate) + longest

    def _all(self) -> range:
        return range(self.partitions_made)


def game_scores(
    *,
    rate: int = 1_000,
    keys: int = 1_000,
    teams: int = 8,
    partitions: int = 2,
    disorder: Duration = "5 seconds",
    faults: Faults | None = None,
    seed: int = 7,
    start: str | None = None,
    events: int | None = None,
    realtime: bool = True,
    name: str = "scores",
) -> Stream:
    """Scores of a mobile game: `user string, team string, points long, at timestamp`.

    `rate` rows arrive a second, each about `disorder` after it happened. In real time the rate is kept against the
    clock; with `realtime=False` the same rows come as fast as they are asked for. `events` makes it end.
    """
    numbers = {"rate": rate, "keys": keys, "teams": teams, "partitions": partitions}
    for word, number in {**numbers, **({} if events is None else {"events": events})}.items():
        _whole(word, number)
    wrong = Faults() if faults is None else faults
    for word in ("stragglers", "bad", "hot"):
        _share(word, getattr(wrong, word))
    reader = GameScores(
        rate,
        keys,
        min(teams, keys),
        partitions,
        not_negative(disorder, "disorder"),
        wrong.stragglers,
        not_negative(wrong.straggler_delay, "straggler_delay"),
        _silences(wrong.silent, partitions),
        wrong.bad,
        wrong.hot,
        _seed(seed),
        _start(start, realtime),
        events,
        realtime,
    )
    return source(reader, COLUMNS, name=name, bounded=events is not None, max_bad=None)


def _within(spans: list[tuple[int, int, int]], low: int, high: int) -> list[list[int]]:
    """The part of spans laid end to end that lies between two places."""
    found, at = [], 0
    for partition, first, end in spans:
        one, other = max(first, first + low - at), min(end, first + high - at)
        if one < other:
            found.append([partition, one, other])
        at += end - first
    return found


def _silences(silent: Any, partitions: int) -> Silences:
    made = []
    for partition, times in silent.items() if isinstance(silent, Mapping) else [(silent, None)]:
        if partition not in range(partitions) or not isinstance(times, (tuple, list)) or len(times) != 2:
            raise PlanError(
                f"silent has {partition!r}: {times!r}",
                f"it says of a partition, 0 to {partitions - 1}, after how long it falls silent and for how long; "
                "None is for ever",
                'write silent={0: ("20 seconds", "15 seconds")}',
            )
        lasting = None if times[1] is None else positive(times[1], "silent")
        made.append((int(partition), not_negative(times[0], "silent"), lasting))
    return tuple(sorted(made, key=lambda silence: silence[0]))


def _start(start: Any, realtime: bool) -> int | None:
    if start is None:
        return None if realtime else timestamps.parse(BEGIN)
    try:
        return timestamps.parse(start)
    except (ValueError, TypeError, AttributeError):
        raise PlanError(
            f"start is {start!r}, which is not a point in time",
            "it is the event time at which the scores begin",
            f'write start="{BEGIN}"',
        ) from None


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise PlanError(f"seed is {seed!r}", "the same whole number gives the same scores", "write seed=7")
    return seed % 2**64


def _whole(word: str, number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST[word]:
        raise PlanError(
            f"{word} is {number!r}",
            f"{word} is a whole number from 1 to {MOST[word]:,}",
            f"write {word}=10",
        )


def _share(word: str, share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise PlanError(
            f"{word} is {share!r}",
            f"{word} is a share of the rows, from 0 to 1",
            f"write {word}=0.01 for one row in a hundred",
        )
