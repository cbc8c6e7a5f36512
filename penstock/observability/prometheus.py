"""How does a run stand, for machines? Every number has a name that `docs/metrics.md` explains.

Base units: seconds, bytes, ratios from 0 to 1. What comes from data is bounded: of very many partitions those that are
furthest behind are told, and of keys only those with a large share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.humanize import harmless
from penstock.observability.health.concern import LEVELS
from penstock.observability.health.watcher import Look
from penstock.observability.observation import Observation
from penstock.observability.overview import Overview, finite

COUNTER, GAUGE = "counter", "gauge"
LONGEST = 120  # signs of a label

Sample = tuple[Mapping[str, str], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; a sample whose value is None is not known and is left out."""

    name: str
    kind: str
    help: str
    samples: Callable[[Look], Iterable[Sample]]

    def lines(self, look: Look, more: Mapping[str, str]) -> Iterator[str]:
        """Its lines, with labels that every sample has; nothing where it has no samples."""
        found: dict[str, float] = {}
        for labels, value in self.samples(look):
            told = ",".join(f'{name}="{escaped(text)}"' for name, text in {**more, **labels}.items())
            if value is not None:
                found.setdefault(told, value)  # one of a name: two that look the same would spoil the whole page
        if found:
            yield f"# HELP {self.name} {self.help}"
            yield f"# TYPE {self.name} {self.kind}"
        for told, value in found.items():
            yield f"{self.name}{{{told}}} {number(value)}"


def escaped(text: str) -> str:
    """A label's value: not too long, printable, and without what would end it.

    >>> escaped('a"b\\\\c')
    'a\\\\"b\\\\\\\\c'
    """
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return harmless(shown).replace("\\", "\\\\").replace('"', '\\"')


def number(value: float) -> str:
    """A value: whole ones without a point."""
    return str(value) if isinstance(value, int) else repr(int(value)) if value.is_integer() else repr(value)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PARTITIONS = 100
HOT_RATIO = 0.1  # of the events, that a key has to have for its name to be a label: ten at most


def exposition(look: Look) -> str:
    """All metrics of a look at a run, as text; the name of the pipeline is a label of each."""
    pipeline = {"pipeline": look.situation.name}
    return "".join(f"{line}\n" for metric in METRICS for line in metric.lines(look, pipeline))


def _of(name: str, kind: str, text: str, read: Any) -> Metric:
    """A metric with one sample, of the overview."""

    def samples(look: Look) -> Iterator[Sample]:
        if look.overview is not None:
            yield {}, read(look.overview)

    return Metric(f"penstock_{name}", kind, text, samples)


def _last(name: str, kind: str, text: str, read: Any) -> Metric:
    """A metric with any number of samples, of the last batch."""

    def samples(look: Look) -> Iterable[Sample]:
        return () if look.last is None else read(look.last)

    return Metric(f"penstock_{name}", kind, text, samples)


def _partitions(name: str, text: str, read: Any) -> Metric:
    def samples(last: Observation) -> Iterator[Sample]:
        some = sorted(last.partitions, key=lambda one: (one["watermark"], one["source"], one["partition"]))
        for one in some[:PARTITIONS]:
            yield {"source": one["source"], "partition": one["partition"]}, read(last, one)

    return _last(f"partition_{name}", GAUGE, text, samples)


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _instant(one: Overview) -> float | None:
    return _seconds(one.watermark) if finite(one.watermark) else None


def _held_back(look: Look) -> Iterator[Sample]:
    one = look.overview
    if one is not None and one.laggard is not None and one.held_back is not None:
        yield {"partition": one.laggard}, _seconds(one.held_back)


def _running(look: Look) -> Iterator[Sample]:
    now = look.situation
    yield {}, None if now.alive is None and not now.ended else int(not now.ended)


def _concerns(look: Look) -> Iterator[Sample]:
    counted = Counter(one.level for one in look.concerns)
    return (({"level": level}, counted[level]) for level in LEVELS)


def _concern(look: Look) -> Iterator[Sample]:
    counted = Counter((one.about, one.level) for one in look.concerns)
    return (({"about": about, "level": level}, number) for (about, level), number in sorted(counted.items()))


def _hot(last: Observation) -> Iterator[Sample]:
    named: dict[str, float] = {}
    for key, share, error in last.hot:
        if share - error >= HOT_RATIO:
            named[str(key)] = max(share - error, named.get(str(key), 0.0))
    return (({"key": key}, share) for key, share in named.items())


def _sinks(last: Observation) -> Iterator[Sample]:
    return (({"sink": name}, batch) for name, batch in sorted(last.sinks.items()) if not name.startswith("kept/"))


def _kept(last: Observation) -> Iterator[Sample]:
    return (({"rows": name[5:]}, size) for name, size in sorted(last.sinks.items()) if name.startswith("kept/"))


METRICS = (
    Metric("penstock_running", GAUGE, "Whether an instance is at work; absent where that cannot be seen.", _running),
    Metric(
        "penstock_finished",
        GAUGE,
        "Whether the input is at its end and every window closed.",
        lambda look: [({}, int(look.situation.finished))],
    ),
    Metric("penstock_concerns", GAUGE, "What needs attention: how many concerns of each level.", _concerns),
    Metric("penstock_concern", GAUGE, "What needs attention, by what it is about; only what there is.", _concern),
    Metric(
        "penstock_sink_waiting",
        GAUGE,
        "Whether the batch that runs waits for a sink that does not answer.",
        lambda look: [({}, int(look.situation.waiting is not None))],
    ),
    _of("batches_total", COUNTER, "Batches that were committed.", lambda one: one.batch + 1),
    _of("events_total", COUNTER, "Events that were read.", lambda one: one.events),
    _of("panes_total", COUNTER, "Panes and rows that were given to sinks.", lambda one: one.panes),
    _of("filtered_events_total", COUNTER, "Events that a where or a function left out.", lambda one: one.filtered),
    _of("late_events_total", COUNTER, "Events that came after all of their windows had expired.", lambda one: one.late),
    _of("quarantined_events_total", COUNTER, "Rows that could not be used.", lambda one: one.quarantined),
    _of("duplicate_events_total", COUNTER, "Rows that dedup had seen before.", lambda one: one.duplicates),
    _of("events_per_second", GAUGE, "Events read, over the last ten seconds.", lambda one: one.events_per_second),
    _of(
        "panes_per_second", GAUGE, "Panes and rows given, over the last ten seconds.", lambda one: one.panes_per_second
    ),
    _of("late_ratio", GAUGE, "Late events among those of the last ten minutes.", lambda one: one.late_share),
    _of(
        "quarantined_ratio",
        GAUGE,
        "Quarantined rows among those of the last ten minutes.",
        lambda one: one.quarantined_share,
    ),
    _of("watermark_timestamp_seconds", GAUGE, "The watermark; absent while it is infinite.", _instant),
    _of(
        "watermark_behind_seconds",
        GAUGE,
        "How far the watermark is behind the processing clock.",
        lambda one: _seconds(one.behind),
    ),
    Metric(
        "penstock_watermark_held_back_seconds",
        GAUGE,
        "How much further the watermark would be without the partition that is furthest behind.",
        _held_back,
    ),
    _of(
        "processing_time_timestamp_seconds",
        GAUGE,
        "The processing clock of the last batch.",
        lambda one: _seconds(one.now),
    ),
    _of("observed_timestamp_seconds", GAUGE, "When the last batch was observed.", lambda one: one.wall),
    _of("last_batch_seconds", GAUGE, "How long the last batch took.", lambda one: one.last_batch_seconds),
    _of(
        "batch_median_seconds",
        GAUGE,
        "How long a batch takes, the median of the last ten minutes.",
        lambda one: one.batch_seconds,
    ),
    Metric(
        "penstock_time_ratio",
        GAUGE,
        "Where the time of the last ten minutes went: read, step, sinks, waiting.",
        lambda look: (
            [] if look.overview is None else [({"part": part}, share) for part, share in look.overview.shares.items()]
        ),
    ),
    _of(
        "sink_waited_ratio",
        GAUGE,
        "Time of the last ten minutes in which a sink that did not answer was waited for.",
        lambda one: one.waited_share,
    ),
    _of("open_windows", GAUGE, "Windows that are held.", lambda one: one.open_windows),
    _of("state_rows", GAUGE, "Rows of state that are held.", lambda one: one.state_rows),
    _last(
        "stage_rows",
        GAUGE,
        "What a stage holds: windows, rows, entries and timers.",
        lambda last: [({"stage": name}, held) for name, held in last.held.items()],
    ),
    _of("state_bytes", GAUGE, "Size of the state.", lambda one: one.state_bytes),
    _last(
        "state_largest_part_bytes",
        GAUGE,
        "The largest part of the state; far above 4 MB where one key is large.",
        lambda last: [({}, last.state.get("largest"))],
    ),
    _of(
        "checkpoint_bytes", GAUGE, "Size of the checkpoint's files, on a local disk.", lambda one: one.checkpoint_bytes
    ),
    _last(
        "checkpoint_files",
        GAUGE,
        "Number of the checkpoint's files, on a local disk.",
        lambda last: [({}, last.checkpoint.get("files"))],
    ),
    _of("lag_events", GAUGE, "Rows in the logs beyond the last batch, where logs can tell.", lambda one: one.lag),
    _of("partitions", GAUGE, "Partitions that the watermark may wait for.", lambda one: one.partitions),
    _of(
        "idle_partitions",
        GAUGE,
        "Partitions that are silent and that nobody waits for.",
        lambda one: one.idle_partitions,
    ),
    _partitions(
        "watermark_behind_seconds",
        "How far a partition's watermark is behind the processing clock.",
        lambda last, one: _seconds(last.now - one["watermark"]) if finite(one["watermark"]) else None,
    ),
    _partitions("idle", "Whether a partition is idle.", lambda last, one: int(one["idle"])),
    _partitions(
        "silent_seconds", "For how long a partition has brought nothing.", lambda last, one: _seconds(one["silent_for"])
    ),
    _partitions("lag_events", "Rows of a partition beyond the last batch.", lambda last, one: one.get("lag")),
    _partitions(
        "to_log_seconds",
        "How long an event took from its event time to its log.",
        lambda last, one: _seconds(one.get("to_log")),
    ),
    _partitions(
        "from_log_seconds",
        "How long an event took from its log to the batch.",
        lambda last, one: _seconds(one.get("from_log")),
    ),
    _last(
        "source_events_total",
        COUNTER,
        "Rows that a source has given.",
        lambda last: [({"source": name}, held["read"]) for name, held in last.sources.items()],
    ),
    _last(
        "source_quarantined_total",
        COUNTER,
        "Rows of a source that could not be used.",
        lambda last: [({"source": name}, held["bad"]) for name, held in last.sources.items()],
    ),
    _last(
        "hottest_key_ratio",
        GAUGE,
        "The share of the events that the most frequent key has, for certain.",
        lambda last: [({}, share - error) for _, share, error in last.hot[:1]],
    ),
    _last("hot_key_ratio", GAUGE, "The share of each key that has a tenth of the events or more.", _hot),
    _last("sink_given_batch", GAUGE, "The batch that a sink was given last, as the checkpoint has it.", _sinks),
    _last(
        "sink_ledger_batch",
        GAUGE,
        "The batch that a sink's own ledger has.",
        lambda last: [({"sink": name}, held.get("batch")) for name, held in sorted(last.ledgers.items())],
    ),
    _last("kept_bytes", GAUGE, "Late and quarantined rows that nobody writes, kept under the checkpoint.", _kept),
    Metric(
        "penstock_replayed_batches",
        GAUGE,
        "Batches of the last ten minutes that were run again.",
        lambda look: [({}, sum(one.replayed for one in look.observed))],
    ),
    Metric(
        "penstock_unobserved_batches",
        GAUGE,
        "Batches of the last ten minutes that could not be written down.",
        lambda look: [({}, sum(one.missed for one in look.observed))],
    ),
)
