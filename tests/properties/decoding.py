"""A process that decodes hostile messages, seed after seed, and writes down which seed it is at: it may not end early.

    python -m tests.properties.decoding FIRST COUNT FOLDER      the blocks of these seeds
    python -m tests.properties.decoding FORM FOLDER             one block, from the input: JSON, its messages in hex

It is let take MEMORY bytes more than it has when its libraries are there; what was taken at most is in its last line.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.connectors.kafka import schema_registry
from penstock.connectors.kafka.decode import alone
from tests.properties.hostile_messages import DEEP, FLAT, FORMS, GOOD, Block, block
from tests.properties.reading_bytes import Files, Messages, Outcome

MEMORY = 256 << 20  # bytes that the decoding of a block of at most two megabytes may take
COLUMNS = "v long, s string, m decimal(38,10), x double"
SCHEMAS: dict[int, str] = {}


class Decoders:
    """A reader of each form, as a worker has them."""

    def __init__(self, folder: Path) -> None:
        schema_registry._asked = lambda _, number, __: {"schema": SCHEMAS[number]} if number in SCHEMAS else None
        self.lines = Files(folder / "json", COLUMNS, "json")
        self.csv = Files(folder / "csv", "v long, s string", "csv", header=False)
        self.messages = {
            form: Messages(*shape, **more)
            for form, shape, more in (
                ("json", (COLUMNS,), {}),
                ("text", (None, "text"), {}),
                ("flat avro", (f"{COLUMNS}, t timestamp, d date, e string", "avro"), {"avro_schema": FLAT}),
                ("avro", (COLUMNS, "avro"), {"avro_schema": DEEP}),
                ("registry", (COLUMNS, "avro"), {"registry": "http://localhost:1"}),
                ("registry read as", (COLUMNS, "avro"), {"registry": "http://localhost:1", "avro_schema": DEEP}),
            )
        }

    def __call__(self, form: str, messages: Sequence[bytes]) -> list[Outcome | None]:
        """What becomes of each message; in a file, of the lines that it is."""
        if form in self.messages:
            decode = self.messages[form].rows.decode
            if hasattr(decode, "writers"):
                decode.writers.clear()
            return list(self.messages[form](messages))
        if form == "lines":
            found = self.lines(b"\n".join(messages))
            places = [sum(len(one) + 1 for one in messages[:at]) for at in range(len(messages))]
            return [found.get(place) for place in places]
        return list(self.csv(b"\n".join(messages)).values())


def judge(decoders: Decoders, one: Block) -> None:
    """Decode a block; the good messages of it are rows."""
    SCHEMAS.clear()
    schema_registry._known.clear()
    SCHEMAS.update(one.schemas)
    found = decoders(one.form, one.messages)
    if one.form == "csv":  # a quote takes what follows with it
        found = []
    for at, outcome in enumerate(found):
        if at in one.good:
            assert outcome is not None
            assert outcome[0] == "row", f"a good message is {outcome}"
            assert outcome[1].get("v", 7) == 7, outcome
        elif outcome is not None and outcome[0] == "bad":
            assert outcome[1], "no reason"
            assert len(outcome[1]) < 1_000, "a reason that nobody can read"


def main(arguments: list[str]) -> None:
    """Decode, and say at which seed, how often, and with how much memory."""
    folder = Path(arguments[-1])
    decoders = Decoders(folder)
    for form in FORMS:
        judge(decoders, Block(form, [GOOD[form]] * 3, frozenset(range(3)), {1: json.dumps(DEEP)}))
    before = _most_memory()
    limit = _address_space() + 4 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if arguments[0].isdigit():
        first, count = int(arguments[0]), int(arguments[1])
        with open(folder / "seed", "wb", buffering=0) as place:
            for seed in range(first, first + count):
                os.pwrite(place.fileno(), b"%-20d" % seed, 0)
                _watched(decoders, block(seed), before)
    else:
        given: Any = json.loads(sys.stdin.read())
        schemas = {int(number): text for number, text in given["schemas"].items()}
        messages = [bytes.fromhex(one) for one in given["messages"]]
        if "death" in given:
            decoders.messages["text"].rows.decode = DEATHS[given["death"]]
        _watched(decoders, Block(arguments[0], messages, frozenset(), schemas), before)
    print(_taken(before) >> 20)


def _watched(decoders: Decoders, one: Block, before: int) -> None:
    judge(decoders, one)
    assert _taken(before) <= MEMORY, f"{_taken(before) >> 20:,} MB were taken"


def _killing(values: Any, schema: Any) -> Any:
    """A decoder that ends its process, to see that it is noticed."""
    os.kill(os.getpid(), signal.SIGSEGV)


def _taking(values: Any, schema: Any) -> Any:
    """A decoder that takes twice what is let."""
    bytearray(b"x") * (2 * MEMORY)
    yield from alone(values, schema)


DEATHS: dict[str, Any] = {"kill": _killing, "take": _taking}


def _taken(before: int) -> int:
    return _most_memory() - before


def _most_memory() -> int:
    """The most that this process ever had; what rusage says begins with what its parent had when it was started."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) * 1024


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1:])
