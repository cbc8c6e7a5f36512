"""A log: partitions, offsets, consumers that may rewind, and transactions that hold readers back."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.playground.code_samples import program
from penstock.playground.controls import Choice, Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Figure, Lane, Log, Rows, Scene, Step, Table

PARTITIONS = 2
OTHERS = ("others write d1 and d2, without a transaction", ("write", "", "0 d1", "1 d2"))
DONE = {"commit": "committed", "abort": "aborted"}


@dataclass
class Record:
    """One entry of a partition: a value, or the marker that ends a transaction."""

    text: str
    transaction: str = ""
    state: str = "committed"


@dataclass
class Reader:
    """A consumer: the partitions it was given, where it stands in each, and what it has handed on."""

    name: str
    at: dict[int, int]
    seen: list[str] = field(default_factory=list)


@dataclass
class Topic:
    """The partitions of a topic."""

    partitions: list[list[Record]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])

    def append(self, partition: int, text: str, transaction: str = "") -> None:
        """Write a record; one of a transaction is open until that ends."""
        state = "open" if transaction else "committed"
        self.partitions[partition].append(Record(text, transaction, state))

    def finish(self, transaction: str, how: str) -> None:
        """Commit or abort a transaction: a marker in each partition that it wrote to."""
        for records in self.partitions:
            mine = [one for one in records if one.transaction == transaction]
            for one in mine:
                one.state = DONE[how]
            if mine:
                records.append(Record(how, state="marker"))

    def stable(self, partition: int) -> int:
        """The last stable offset: the first record of a transaction that is still open, or the end."""
        records = self.partitions[partition]
        return next((n for n, one in enumerate(records) if one.state == "open"), len(records))


def _poll(topic: Topic, reader: Reader, isolation: str) -> list[str]:
    """What a consumer is handed: at most two records of each partition, and nothing that it may not see."""
    found = []
    for partition, start in reader.at.items():
        records = topic.partitions[partition]
        end = topic.stable(partition) if isolation == "read_committed" else len(records)
        at, taken = start, 0
        while at < end and taken < 2:
            one = records[at]
            hidden = one.state == "marker" or (isolation == "read_committed" and one.state == "aborted")
            if not hidden:
                found.append(one.text)
                taken += 1
            at += 1
        reader.at[partition] = max(start, at)
    reader.seen += found
    return found


def _script(values: Values) -> list[tuple[str, tuple[str, ...]]]:
    """What the producers do, step after step: in words, and as (action, arguments)."""
    last = values["last"]
    steps: list[tuple[str, tuple[str, ...]]] = [
        ("producer A writes a1 and a2 in a transaction", ("write", "A", "0 a1", "1 a2")),
        ("A writes a3", ("write", "A", "0 a3")),
        ("A commits: three records", ("commit", "A")),
        ("producer B writes b1 and b2", ("write", "B", "0 b1", "1 b2")),
        ("B aborts: its records stay in the log, crossed out", ("abort", "B")),
        ("producer C writes c1", ("write", "C", "1 c1")),
        *([OTHERS] if values["others"] == "two" else []),
        ("nothing is written", ("wait",)),
    ]
    if last != "open":
        steps.append((f"C {last}s", (last, "C")))
    else:
        steps.append(("C says nothing: its transaction is still open", ("wait",)))
    steps += [("nothing is written", ("wait",))] * 2
    if values["rewind"] < 9:
        steps.append((f"the consumers rewind to offset {values['rewind']}", ("rewind", str(values["rewind"]))))
        steps += [("nothing is written", ("wait",))] * 3
    return steps


def _act(topic: Topic, readers: list[Reader], action: tuple[str, ...]) -> None:
    match action:
        case ("write", transaction, *written):
            for one in written:
                partition, text = one.split()
                topic.append(int(partition), text, transaction)
        case ("commit" | "abort" as how, transaction):
            topic.finish(transaction, how)
        case ("rewind", offset):
            for reader in readers:
                reader.at = {partition: min(at, int(offset)) for partition, at in reader.at.items()}


def _frame(topic: Topic, readers: list[Reader]) -> tuple[Lane, ...]:
    lanes = []
    for number, records in enumerate(topic.partitions):
        pointers = [(reader.name, reader.at[number]) for reader in readers if number in reader.at]
        pointers.append(("stable end", topic.stable(number)))
        lanes.append(Lane(f"partition {number}", tuple((one.text, one.state) for one in records), tuple(pointers)))
    return tuple(lanes)


def scene(values: Values) -> Scene:
    """The topic after each step, and what the consumers were handed."""
    topic = Topic()
    readers = [
        Reader(f"consumer {n + 1}", {p: 0 for p in range(PARTITIONS) if p % values["consumers"] == n})
        for n in range(values["consumers"])
    ]
    steps, frames = [], []
    rows: Rows = []
    for number, (said, action) in enumerate(_script(values)):
        _act(topic, readers, action)
        handed = {reader.name: _poll(topic, reader, values["isolation"]) for reader in readers}
        rows += [(number, (f"step {number + 1}", name, " ".join(texts))) for name, texts in handed.items() if texts]
        frames.append(_frame(topic, readers))
        steps.append(Step(said))
    seen = [text for reader in readers for text in reader.seen]
    stuck = [n for n in range(PARTITIONS) if topic.stable(n) < len(topic.partitions[n])]
    return Scene(
        steps,
        (
            Log("The log", tuple(frames), "Each box is a record with its offset; the triangle is who reads it next."),
            Table("What the consumers are handed", ("at", "consumer", "records"), tuple(rows)),
        ),
        (
            Figure("handed on", str(len(seen)), f"{len(seen) - len(set(seen))} of them for a second time"),
            Figure("different records", str(len(set(seen)))),
            Figure("stuck", ", ".join(f"partition {n}" for n in stuck) or "none", "behind an open transaction"),
        ),
    )


def code(values: Values) -> str:
    """The source that reads such a topic."""
    start = (
        ""
        if values["rewind"] >= 9
        else f"""
    start={{"plays/0": {values["rewind"]}, "plays/1": {values["rewind"]}}},"""
    )
    return program(f'''plays = ps.kafka(
    "plays",
    servers="localhost:9092",
    schema="team string, points long, at timestamp",
    isolation="{values["isolation"]}",{start}
    tasks={values["consumers"]},
)''')


LESSON = Lesson(
    id="log",
    title="A log: offsets, rewinds, transactions",
    look=(
        "Records are only ever added at the end of a partition, each under its offset; reading takes nothing away, so "
        "a consumer is no more than a position and may go back.",
        "Records of an aborted transaction stay in the log, and who reads committed ones alone is not handed them.",
        "An open transaction holds such readers at the stable end, also from records behind it that are finished.",
    ),
    controls=(
        Choice(
            "isolation",
            "consumers read",
            (("read_committed", "what is committed"), ("read_uncommitted", "everything, at once")),
            "read_committed",
        ),
        Choice(
            "last",
            "the last transaction",
            (("commit", "commits"), ("abort", "aborts"), ("open", "stays open")),
            "commit",
        ),
        Choice("others", "behind it others write", (("none", "nothing"), ("two", "two records")), "none"),
        Slider("consumers", "consumers", 1, 2, 2),
        Slider("rewind", "rewind at the end to offset (9: not at all)", 0, 9, 9),
    ),
    presets=(
        Preset("commits 3, aborts 2, commits 1", {}),
        Preset("everything, at once", {"isolation": "read_uncommitted"}),
        Preset("an open transaction", {"last": "open", "others": "two"}),
        Preset("once more from the start", {"rewind": 0}),
    ),
    play=scene,
    code=code,
    model="A model: the log, its producers and its consumers are a few lists in Python. Penstock's Kafka source "
    "follows the same rules, and is tested with a real broker.",
)
