"""What a pattern remembers, at rest and back: events in order of time, and partial matches by the hash of their key.

Both lie in pieces that are written once and named by their hash. A batch adds a pile of events and drops piles that W
has passed; of the partial matches it writes those shelves anew that it changed. Of a shelf only the keys that a batch
concerns are made tuples; the others stay columns.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.pattern.automaton import Automaton
from penstock.engine.operators.pattern.matcher import Key, Of, Partial, Whole
from penstock.engine.state.cache import CACHE
from penstock.engine.state.codec import checked, framed, name_of, other_columns, unframed
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.index import among
from penstock.types.arrow import arrow_schema, arrow_type, one_batch
from penstock.types.timestamps import MAX_TIME

Fetch = Callable[[str], bytes]
Keyed = dict[Key, Of]
EVENT_COLUMNS = (("@time", pa.int64()), ("@partition", pa.string()), ("@offset", pa.int64()), ("@bits", pa.int64()))
_ONE = (
    ("state", pa.int64()),
    ("open", pa.int64()),
    ("near", pa.bool_()),
    ("start", pa.int64()),
    ("tail", pa.int64()),
    ("first", pa.int64()),
    ("last", pa.int64()),
    ("given", pa.bool_()),
    ("time", pa.int64()),
)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
NAN = float("nan")  # the one that keys hold: it is found again because it is the same object
_LARGE, _SMALL = 4_096, 256  # a shelf has about so many rows at most, and at least


class Piece:
    """A batch of rows that is written once: in hand, or fetched by its name when it is needed."""

    __slots__ = ("_fetch", "_held", "_schema", "name")

    def __init__(
        self,
        held: pa.RecordBatch | None = None,
        name: str | None = None,
        fetch: Fetch | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        self.name = name
        self._held, self._fetch, self._schema = held, fetch, schema

    def get(self) -> pa.RecordBatch:
        """The rows; through the cache, and not held on to, where it is at rest."""
        if self._held is not None:
            return self._held
        assert self.name is not None
        batch: pa.RecordBatch = CACHE.get(self.name, self._read)
        if self._schema is not None and not batch.schema.equals(self._schema):
            raise other_columns(_columns(batch.schema), _columns(self._schema))
        return batch

    def written(self) -> tuple[str, bytes]:
        """The name and the bytes; from then on others of this process find it in the cache."""
        if self._fetch is not None and self.name is not None:
            return self.name, checked(self.name, self._fetch(self.name))
        batch = self.get()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
            writer.write_batch(batch)
        data = framed({"rows": batch.num_rows}, [sink.getvalue().to_pybytes()])
        if self.name is None:
            self.name = name_of(data)
            CACHE.put(self.name, batch, batch.nbytes)
        return self.name, data

    def _read(self) -> tuple[pa.RecordBatch, int]:
        assert self.name is not None
        assert self._fetch is not None
        data = checked(self.name, self._fetch(self.name))
        _, at = unframed(data)
        batch = one_batch(pa.ipc.open_stream(pa.py_buffer(data).slice(at)).read_all())
        return batch, batch.nbytes


@dataclass(frozen=True, slots=True)
class Pile:
    """Events in order of time, those before `done` passed already; the time of the first that is left, and the last."""

    piece: Piece
    done: int
    rows: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Shelf:
    """Partial matches of the keys of one range of hashes: how many, the earliest first event, the earliest match."""

    piece: Piece
    rows: int
    due: int
    hold: int


@dataclass(frozen=True, slots=True)
class Memory:
    """All that a pattern remembers: `digits` is how many bits of a hash choose the shelf, `seen` numbers events."""

    piles: tuple[Pile, ...] = ()
    shelves: Mapping[int, Shelf] = field(default_factory=dict)
    digits: int = 0
    seen: int = 0

    @property
    def hold(self) -> int:
        """The least event time of a match that waits."""
        return min((shelf.hold for shelf in self.shelves.values()), default=MAX_TIME)

    @property
    def held(self) -> int:
        """How many events and partial matches are remembered."""
        return sum(pile.rows - pile.done for pile in self.piles) + sum(s.rows for s in self.shelves.values())


@dataclass
class Opened:
    """Shelves that a batch changes, by number: the keys that it concerns in hand, and the rows of the others."""

    digits: int
    keyed: dict[int, Keyed] = field(default_factory=dict)
    left: dict[int, pa.RecordBatch] = field(default_factory=dict)

    def of(self, hashed: int) -> Keyed:
        """The keys in hand of the shelf of a hash."""
        return self.keyed[shelf_of(hashed, self.digits)]

    def left_of(self, number: int) -> list[pa.RecordBatch]:
        """The rows of a shelf that are not in hand, if it had any."""
        return [self.left[number]] if number in self.left else []


class Rest:
    """How the memory of one pattern is written and read."""

    def __init__(self, automaton: Automaton) -> None:
        side = automaton.side
        self.automaton = automaton
        self.events = pa.schema([*arrow_schema(side.schema), *EVENT_COLUMNS])
        keys = [(f"key.{n}", arrow_type(column.type)) for n, column in enumerate(side.key_schema.columns)]
        kept = [(f"held.{n}", kind) for n, kind in enumerate(automaton.register_types)]
        self.partial = pa.schema([*keys, ("hash", pa.uint64()), *_ONE, *kept])
        self.keys = len(keys)

    def pile(self, batch: pa.RecordBatch) -> Pile:
        """A pile of these events, which are in order."""
        times = batch.column("@time").to_numpy()
        return Pile(Piece(batch), 0, len(times), int(times[0]), int(times[-1]))

    def shelf(self, rows: pa.RecordBatch) -> Shelf:
        """A shelf of these rows."""
        partial = rows.column("state").to_numpy() >= 0
        firsts, times = (rows.column(name).to_numpy() for name in ("first", "time"))
        due = int(firsts[partial].min(initial=MAX_TIME))
        return Shelf(Piece(rows), len(partial), due, int(times[~partial].min(initial=MAX_TIME)))

    def opened(self, memory: Memory, hashed: np.ndarray) -> Opened:
        """The shelves of keys with these hashes: those keys in hand, the other rows as they are."""
        opened = Opened(memory.digits)
        numbers = shelves_of(hashed, memory.digits)
        for number in np.unique(numbers).tolist():
            opened.keyed[number] = {}
            if number in memory.shelves:
                rows = memory.shelves[number].piece.get()
                mine = among(rows.column("hash").to_numpy(), hashed[numbers == number])
                opened.keyed[number] = self._keyed(rows.filter(pa.array(mine)))
                opened.left[number] = rows.filter(pa.array(~mine))
        return opened

    def over(self, memory: Memory, edge: int) -> np.ndarray:
        """The hashes of keys with a partial match that began no later than an instant."""
        found = [np.empty(0, dtype=np.uint64)]
        for shelf in memory.shelves.values():
            if shelf.due <= edge:
                rows = shelf.piece.get()
                state, first, hashed = (rows.column(name).to_numpy() for name in ("state", "first", "hash"))
                found.append(hashed[(state >= 0) & (first <= edge)])
        return np.concatenate(found)

    def shelved(self, memory: Memory, opened: Opened) -> tuple[dict[int, Shelf], int]:
        """The shelves with those that a batch changed, spread over more or fewer as there are more or fewer rows."""
        shelves = dict(memory.shelves)
        for number, keyed in opened.keyed.items():
            shelves.pop(number, None)
            rows = self._joined([*opened.left_of(number), *([self._batch(keyed)] if keyed else [])])
            if rows.num_rows:
                shelves[number] = self.shelf(rows)
        rows, digits = sum(shelf.rows for shelf in shelves.values()), memory.digits
        while rows > _LARGE << digits and digits < 8:
            digits += 2
        while digits and rows < _SMALL << digits:
            digits -= 2
        if digits != memory.digits:
            whole = self._joined([shelves[number].piece.get() for number in sorted(shelves)])
            numbers = shelves_of(whole.column("hash").to_numpy(), digits)
            shelves = {
                number: self.shelf(whole.take(pa.array(np.flatnonzero(numbers == number))))
                for number in np.unique(numbers).tolist()
            }
        return {number: shelves[number] for number in sorted(shelves)}, digits

    def _joined(self, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Rows of several as one, in order of the hashes; those of a key stay in theirs."""
        batch = one_batch(pa.Table.from_batches(parts, self.partial))
        return batch.take(pa.array(np.argsort(batch.column("hash").to_numpy(), kind="stable")))

    def saved(self, memory: Memory, known: Container[str]) -> Saved:
        parts: dict[str, bytes] = {}
        for piece in (*(pile.piece for pile in memory.piles), *(shelf.piece for shelf in memory.shelves.values())):
            if piece.name is None or piece.name not in known:
                name, data = piece.written()
                if name not in known:
                    parts[name] = data
        head = framed(
            {
                "piles": [[pile.piece.name, pile.done, pile.rows, pile.low, pile.high] for pile in memory.piles],
                "shelves": [[s.piece.name, number, s.rows, s.due, s.hold] for number, s in memory.shelves.items()],
                "digits": memory.digits,
                "seen": memory.seen,
            }
        )
        return Saved(head, parts)

    def restored(self, head: bytes, fetch: Fetch) -> Memory:
        said, _ = unframed(head)
        piles = [Pile(Piece(None, name, fetch, self.events), *numbers) for name, *numbers in said["piles"]]
        shelves = {
            number: Shelf(Piece(None, name, fetch, self.partial), *numbers)
            for name, number, *numbers in said["shelves"]
        }
        return Memory(tuple(piles), shelves, said["digits"], said["seen"])

    def _batch(self, keyed: Keyed) -> pa.RecordBatch:
        """Partial matches and waiting matches as rows, key by key in order of their first events."""
        ordered = sorted(keyed.items(), key=lambda item: (item[1].hash, item[1].partial[0].start))
        rows: list[tuple[Any, ...]] = []
        for key, (hashed, partial, waiting) in ordered:
            for one in partial:
                rows.append((*key, hashed, *one[:-1], 0, *one.held))
            for whole in waiting:
                rows.append((*key, hashed, *_waits(whole), *whole.held))
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.partial)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.partial.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial)

    def _keyed(self, batch: pa.RecordBatch) -> Keyed:
        columns = [listed(column) for column in batch.columns]
        at = self.keys
        found: dict[Key, tuple[int, list[Partial], list[Whole]]] = {}
        for n, register in enumerate(self.automaton.registers, at + 10):
            if register.kind == "sum" and pa.types.is_decimal(batch.schema.types[n]):
                columns[n] = [None if value is None else int(value) for value in columns[n]]
        for row in zip(*columns, strict=True):
            key, (number, state, is_open, near, start, tail, first, last, given, time) = row[:at], row[at : at + 10]
            held = row[at + 10 :]
            _, partial, waiting = found.setdefault(key, (number, [], []))
            if state < 0:
                waiting.append(Whole(start, tail, first, last, time, held))
            else:
                partial.append(Partial(state, is_open, near, start, tail, first, last, given, held))
        return {key: Of(*parts) for key, parts in found.items()}


def _columns(schema: pa.Schema) -> str:
    return f"the columns {', '.join(f'{field.name} {field.type}' for field in schema)}"


def parts(head: bytes) -> tuple[str, ...]:
    """The names of all pieces of a memory."""
    said, _ = unframed(head)
    return tuple(one[0] for one in (*said["piles"], *said["shelves"]))


def shelf_of(hashed: int, digits: int) -> int:
    """The shelf of a key; the last bits of the hash have chosen the shard already."""
    return hashed >> 48 & (1 << digits) - 1


def shelves_of(hashed: np.ndarray, digits: int) -> np.ndarray:
    """The shelves of many keys."""
    return hashed >> np.uint64(48) & np.uint64((1 << digits) - 1)


def listed(column: pa.Array) -> list[Any]:
    """A column as plain values: times as microseconds, and one NaN."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    if pa.types.is_list(kind):
        return [tuple(events) for events in column.to_pylist()]
    numbers = pa.types.is_integer(column.type) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if column.null_count == 0 and numbers:
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    else:
        values = column.to_pylist()
    return [NAN if value != value else value for value in values] if pa.types.is_floating(kind) else values


def _waits(whole: Whole) -> tuple[Any, ...]:
    """The numbers of a match that waits, in the columns of a partial match; it has no state."""
    return (-1, 0, False, whole.start, whole.onward, whole.first, whole.last, True, whole.time)
