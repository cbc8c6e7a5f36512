"""What can go wrong with Kafka: each in three parts, naming the offsets, and never a secret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.errors import DataError, PenstockError, PlanError, did_you_mean

CHOICES = (
    "bring the lost messages back and start again; or start with an empty checkpoint; or go on without them, which is "
    'lost for good and is recorded: ps.kafka(..., on_loss="skip")'
)


class SourceError(PenstockError):
    """A source cannot be reached, or refuses to be read."""


class DataLost(DataError):
    """Messages that were to be read are not there any more."""


def not_installed() -> PlanError:
    """The client library is missing."""
    return PlanError(
        "Kafka is read with confluent-kafka, which is not installed",
        "Penstock itself needs nothing but Python; each connector brings its own package",
        "pip install 'penstock[kafka]'",
    )


def unreachable(servers: str, seconds: float, said: str, doing: str) -> SourceError:
    """The brokers did not answer in time."""
    return SourceError(
        f"Kafka at {servers} did not answer within {seconds:g} s, {doing}",
        said or "no broker could be reached",
        "see that the brokers run and that servers=… names them; a start goes on where the run stopped; "
        'more patience: ps.kafka(..., timeout="5 minutes")',
    )


def refused(servers: str, said: str, doing: str) -> SourceError:
    """The brokers answered, and said no."""
    return SourceError(
        f"Kafka at {servers} refused, {doing}",
        said,
        "see that the settings (security.protocol, sasl.mechanism, …) and the rights of the user are what it wants",
    )


def bad_settings(said: str) -> PlanError:
    """The client does not take its settings."""
    return PlanError(
        "the settings of ps.kafka(...) are not what its client knows",
        said,
        "use the names of librdkafka, such as settings={'security.protocol': 'SASL_SSL'}; Java's differ in places",
    )


def unknown_topics(missing: Sequence[str], known: Iterable[str], servers: str) -> SourceError:
    """Topics that are not there when a new checkpoint begins."""
    names = [name for name in known if not name.startswith("__")]
    return SourceError(
        f"there is no topic {', '.join(map(repr, missing))} at {servers}",
        "a topic that is not there has no offset to begin at, and a misspelt one would be waited for in silence",
        did_you_mean(missing[0], names, "make the topic first, or mend its name"),
    )


def nothing_matches(pattern: str, known: Iterable[str], servers: str) -> SourceError:
    """A pattern that no topic matches when a new checkpoint begins."""
    names = sorted(name for name in known if not name.startswith("__"))
    return SourceError(
        f"no topic at {servers} matches {pattern!r}",
        f"the pattern must match a topic's whole name; there are: {', '.join(names[:10]) or 'none'}",
        "mend the pattern, or make the first topic before the start",
    )


def gone(topic: str, read_to: Sequence[str]) -> DataLost:
    """A topic that was being read has been deleted."""
    return DataLost(
        f"the topic {topic!r} is gone; it had been read to {', '.join(read_to)}",
        "whatever was written to it after these offsets cannot be read any more",
        CHOICES,
    )


def recreated(topic: str, was: str, is_now: str, read_to: Sequence[str]) -> DataLost:
    """A topic with the same name and another id."""
    return DataLost(
        f"the topic {topic!r} was deleted and made anew: its id was {was} and is now {is_now}; "
        f"the old one had been read to {', '.join(read_to)}",
        "offsets of the old topic mean nothing in the new one, and what was unread in the old one is lost",
        CHOICES,
    )


def retained(losses: Sequence[tuple[str, int, int]]) -> DataLost:
    """Retention, or someone who deletes records, was faster than this pipeline."""
    lost = "; ".join(f"{partition}: offsets {at} to {first - 1}" for partition, at, first in losses)
    return DataLost(
        f"Kafka has deleted messages that were not read yet: {lost}",
        "retention passed the pipeline's position: the logs now begin after it",
        CHOICES,
    )


def truncated(losses: Sequence[tuple[str, int, int]]) -> DataLost:
    """A log that is shorter than what was read of it."""
    lost = "; ".join(f"{partition} was read to {at} and ends at {end}" for partition, at, end in losses)
    return DataLost(
        f"the log has become shorter than what was read of it: {lost}",
        "it was cut or made anew; new messages take the offsets of others that were read already",
        CHOICES,
    )


def shrunk(partitions: Sequence[str]) -> DataLost:
    """Partitions that are not there any more."""
    return DataLost(
        f"partitions have vanished: {', '.join(partitions)}",
        "Kafka never removes a partition from a topic: the topic was made anew with fewer",
        CHOICES,
    )


def out_of_range(partition: str, at: int, upto: int, said: str) -> DataLost:
    """A worker asked for offsets that are not there."""
    return DataLost(
        f"{partition} does not hold the offsets {at} to {upto - 1} that this batch is to read",
        f"{said}: retention passed them, or the topic was cut or made anew after the batch was planned",
        CHOICES,
    )


def nothing_came(partition: str, at: int, upto: int, seconds: float, said: str) -> SourceError:
    """A worker waited in vain."""
    return SourceError(
        f"Kafka gave nothing of {partition} for {seconds:g} s, with offsets {at} to {upto - 1} still to be read",
        said or "the broker answers, and sends neither messages nor the end of the partition",
        "see that the workers can reach the leader of the partition; a start goes on where the run stopped",
    )


def outside(what: str, partition: str, offset: int, first: int, end: int) -> PlanError:
    """An offset that someone asked for and that is not there."""
    return PlanError(
        f"{what} names the offset {offset} of {partition}, which holds {first} to {end}",
        "beginning elsewhere than asked would lose messages in silence, or read others than were meant",
        f'write an offset between {first} and {end}, or {what}="earliest"',
    )


def unnamed(what: str, partitions: Sequence[str]) -> PlanError:
    """Offsets that leave partitions out."""
    some = ", ".join(partitions[:8]) + (", …" if len(partitions) > 8 else "")
    return PlanError(
        f"{what} gives offsets and leaves these partitions out: {some}",
        "a partition that is left out by mistake would be read from somewhere, or not at all",
        f'name each: {what}={{"{partitions[0]}": 0, ...}}; an offset may be "earliest" or "latest"',
    )


def unnamed_partition(what: str, partitions: Sequence[str]) -> PlanError:
    """Offsets of partitions that the topics do not have."""
    return PlanError(
        f"{what} gives offsets of {', '.join(partitions)}, which the topics do not have",
        "a partition is named by its topic and number, such as 'scores/0'",
        "name partitions of the topics that are read",
    )
