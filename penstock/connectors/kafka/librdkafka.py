"""Messages in blocks from librdkafka: the C library inside confluent-kafka, by its own public functions.

The Python client makes an object of each message and of all that is in it. Here a block is the addresses of its
messages, and what is in them is gathered into columns at once: half the work of reading many small ones. The functions
and the form of a message are what librdkafka promises to keep.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

_CONSUMER, _DONE, _KNOWN = 1, 0, 0
_TEXT = 512  # bytes of an explanation
_LOWEST = 8  # the address that memory is counted from: an array may not begin at zero
_HIGHEST = 1 << 56  # beyond the addresses that any machine gives to a process
_OnError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_OnLog = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_handle, _text, _int, _place = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int32
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "conf_new": (_handle, []),
    "conf_set": (_int, [_handle, _text, _text, _text, ctypes.c_size_t]),
    "conf_set_error_cb": (None, [_handle, _OnError]),
    "conf_set_log_cb": (None, [_handle, _OnLog]),
    "conf_destroy": (None, [_handle]),
    "new": (_handle, [_int, _handle, _text, ctypes.c_size_t]),
    "set_log_queue": (_int, [_handle, _handle]),
    "poll_set_consumer": (_int, [_handle]),
    "queue_get_consumer": (_handle, [_handle]),
    "queue_destroy": (None, [_handle]),
    "consumer_close": (_int, [_handle]),
    "destroy": (None, [_handle]),
    "topic_partition_list_new": (_handle, [_int]),
    "topic_partition_list_add": (_handle, [_handle, _text, _place]),
    "topic_partition_list_set_offset": (_int, [_handle, _text, _place, ctypes.c_int64]),
    "topic_partition_list_destroy": (None, [_handle]),
    "assign": (_int, [_handle, _handle]),
    "pause_partitions": (_int, [_handle, _handle]),
    "resume_partitions": (_int, [_handle, _handle]),
    "consume_batch_queue": (ctypes.c_ssize_t, [_handle, _int, _handle, ctypes.c_size_t]),
    "last_error": (_int, []),
    "message_timestamp": (ctypes.c_int64, [_handle, _handle]),
    "message_headers": (_int, [_handle, ctypes.POINTER(_handle)]),
    "header_get_all": (
        _int,
        [_handle, ctypes.c_size_t, ctypes.POINTER(_text), ctypes.POINTER(_handle), ctypes.POINTER(ctypes.c_size_t)],
    ),
}


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_: ClassVar = [
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    ]


@cache
def _library() -> Any:
    """The library that the Python client is linked with: what is asked of the one is found in the other."""
    from confluent_kafka import cimpl

    library = ctypes.CDLL(cimpl.__file__)
    for name, (gives, takes) in _FUNCTIONS.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = gives, takes
    return library


@cache
def _let_go() -> Callable[[int], None]:
    """What frees a message: so short that other threads need not be let in meanwhile."""
    function = ctypes.PyDLL(_library()._name).rd_kafka_message_destroy
    function.restype, function.argtypes = None, [ctypes.c_void_p]
    destroy: Callable[[int], None] = function
    return destroy


class _Memory:
    """All memory of the process as numbers of a kind; only those that are asked for are looked at."""

    def __init__(self, kind: str) -> None:
        form = np.dtype(kind)
        shape = ((_HIGHEST - _LOWEST) // form.itemsize,)
        self.__array_interface__ = {"version": 3, "typestr": form.str, "shape": shape, "data": (_LOWEST, True)}


@cache
def _memory(kind: str) -> np.ndarray:
    return np.asarray(_Memory(kind))


def gathered(starts: np.ndarray, sizes: np.ndarray) -> pa.LargeBinaryArray:
    """Stretches of memory one after the other; null where one starts at zero."""
    if not len(starts):
        return pa.array([], pa.large_binary())
    # Every other element of an array over all of memory; it ends where it begins, for what lies between has no size.
    edges = np.empty(2 * len(starts) + 1, np.int64)
    edges[0:-1:2] = np.maximum(starts - _LOWEST, 0)
    edges[1::2] = edges[0:-1:2] + sizes
    edges[-1] = edges[0]
    memory = pa.foreign_buffer(_LOWEST, _HIGHEST - _LOWEST)
    every = pa.Array.from_buffers(pa.large_binary(), len(edges) - 1, [None, pa.py_buffer(edges), memory])
    return every.take(pa.array(np.arange(0, len(edges) - 1, 2), mask=starts == 0))


@dataclass(frozen=True, eq=False, slots=True)
class Messages:
    """Messages where the library keeps them, until they are let go; nothing may be asked of them afterwards."""

    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: Any) -> Messages:
        """Some of them."""
        return Messages(self.places[which])

    def let_go(self) -> None:
        """Free them."""
        deque(map(_let_go(), self.places.tolist()), maxlen=0)

    @property
    def failures(self) -> np.ndarray:
        """The codes of those that are an error or the end of a partition; zero for the others."""
        codes: np.ndarray = _memory("i4")[(self.places + _Message.err.offset - _LOWEST) >> 2]
        return codes

    @property
    def offsets(self) -> np.ndarray:
        """Where each is in its partition."""
        return self._words(_Message.offset.offset)

    def values(self) -> pa.LargeBinaryArray:
        """The value of each."""
        return gathered(self._words(_Message.payload.offset), self._words(_Message.len.offset))

    def keys(self) -> pa.LargeBinaryArray:
        """The key of each."""
        return gathered(self._words(_Message.key.offset), self._words(_Message.key_len.offset))

    def millis(self) -> np.ndarray:
        """The time that Kafka keeps with each, below zero where there is none."""
        ask = _library().rd_kafka_message_timestamp
        return np.fromiter(map(ask, self.places.tolist(), repeat(None)), np.int64, len(self))

    def headers(self) -> Iterator[list[tuple[str, bytes | None]]]:
        """The headers of each, in order."""
        found, name, value, size = _handle(), _text(), _handle(), ctypes.c_size_t()
        library = _library()
        for place in self.places.tolist():
            pairs: list[tuple[str, bytes | None]] = []
            if library.rd_kafka_message_headers(place, found) == _DONE:
                while library.rd_kafka_header_get_all(found, len(pairs), name, value, size) == _DONE:
                    data = None if value.value is None else ctypes.string_at(value.value, size.value)
                    pairs.append(((name.value or b"").decode(errors="backslashreplace"), data))
            yield pairs

    def error(self, at: int) -> Any:
        """What went wrong, as the Python client says it."""
        from confluent_kafka import KafkaError

        said = self[at : at + 1].values()[0].as_py()  # an error's value is its explanation
        return KafkaError(int(self.failures[at]), None if said is None else said.decode(errors="replace"))

    def _words(self, beyond: int) -> np.ndarray:
        words: np.ndarray = _memory("i8")[(self.places + beyond - _LOWEST) >> 3]
        return words


class Consumer:
    """A consumer of one partition at a time; complaints and the log are heard while it is asked for messages."""

    def __init__(self, settings: Mapping[str, Any], complaint: Callable[[Any], None], log: Callable[[int, str], None]):
        from confluent_kafka import KafkaError

        self._library = _library()
        # What C calls must live as long as the consumer.
        self._called = (
            _OnError(lambda _, code, reason, __: complaint(KafkaError(code, (reason or b"").decode(errors="replace")))),
            _OnLog(lambda _, level, place, said: log(level, f"{place.decode()}: {said.decode(errors='replace')}")),
        )
        self._client = self._made({**settings, "log.queue": True})
        self._library.rd_kafka_set_log_queue(self._client, None)
        self._library.rd_kafka_poll_set_consumer(self._client)
        self._queue = self._library.rd_kafka_queue_get_consumer(self._client)

    def _made(self, settings: Mapping[str, Any]) -> int:
        why = ctypes.create_string_buffer(_TEXT)
        made = self._library.rd_kafka_conf_new()
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if self._library.rd_kafka_conf_set(made, name.encode(), text.encode(), why, _TEXT) != _KNOWN:
                self._library.rd_kafka_conf_destroy(made)
                raise ValueError(why.value.decode(errors="replace"))
        self._library.rd_kafka_conf_set_error_cb(made, self._called[0])
        self._library.rd_kafka_conf_set_log_cb(made, self._called[1])
        client: int | None = self._library.rd_kafka_new(_CONSUMER, made, why, _TEXT)
        if client is None:
            self._library.rd_kafka_conf_destroy(made)
            raise ValueError(why.value.decode(errors="replace"))
        return client

    def assign(self, topic: str, partition: int, offset: int) -> None:
        """Read a partition from an offset on."""
        self._told("assign", topic, partition, offset)

    def pause(self, topic: str, partition: int) -> None:
        """Fetch no more of a partition for now."""
        self._told("pause_partitions", topic, partition)

    def resume(self, topic: str, partition: int) -> None:
        """Fetch more of it again."""
        self._told("resume_partitions", topic, partition)

    def take(self, most: int, seconds: float) -> Messages:
        """What comes in a time, until it is so much; what is there already, if that is zero."""
        places = np.empty(most, np.int64)
        count = self._library.rd_kafka_consume_batch_queue(self._queue, int(seconds * 1000), places.ctypes.data, most)
        if count < 0:
            self._raise(self._library.rd_kafka_last_error())
        return Messages(places[:count])

    def close(self) -> None:
        """End it and its threads."""
        self._library.rd_kafka_consumer_close(self._client)
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_destroy(self._client)

    def _told(self, what: str, topic: str, partition: int, offset: int | None = None) -> None:
        places = self._library.rd_kafka_topic_partition_list_new(1)
        self._library.rd_kafka_topic_partition_list_add(places, topic.encode(), partition)
        if offset is not None:
            self._library.rd_kafka_topic_partition_list_set_offset(places, topic.encode(), partition, offset)
        code = getattr(self._library, f"rd_kafka_{what}")(self._client, places)
        self._library.rd_kafka_topic_partition_list_destroy(places)
        if code != _DONE:
            self._raise(code)

    @staticmethod
    def _raise(code: int) -> None:
        from confluent_kafka import KafkaError, KafkaException

        raise KafkaException(KafkaError(code))
