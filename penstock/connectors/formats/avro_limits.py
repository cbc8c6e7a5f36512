"""Whether a decoder may see an Avro value: its bytes are walked by their schema first, without recursion.

A count, a length or a nesting that no bytes stand behind costs a decoder its memory or its stack; here it is a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from penstock.connectors.formats.limits import Limits

LARGEST = 1 << 31  # bytes of a fixed
_WIDTHS = {"null": 0, "float": 4, "double": 8}
_NUMBERS = {"int": 31, "long": 63}
_LED = ("string", "bytes")  # by their length
_SIZED = (*_WIDTHS, *_LED, "fixed")


@dataclass(slots=True)
class Node:
    """A type of a schema: its word, what it is made of, and how many bytes, symbols or branches it has."""

    word: str
    parts: list[Node] = field(default_factory=list)
    size: int = 0
    nothing: int | None = None
    bits: int = field(init=False)
    sized: bool = field(init=False)

    def __post_init__(self) -> None:
        self.bits, self.sized = _NUMBERS.get(self.word, 0), self.word in _SIZED


KEY = Node("string")


def node_of(schema: Any, names: dict[str, Node]) -> Node:
    """A parsed schema as nodes, a type that is named again as the same one; ValueError where it is no type."""
    if isinstance(schema, list):
        return Node("union", [node_of(one, names) for one in schema])
    if isinstance(schema, str):
        return names[schema] if schema in names else _plain(schema)
    word = schema["type"]
    if not isinstance(word, str):
        return node_of(word, names)
    if word in names:
        return names[word]
    made = Node(word) if word in ("record", "error", "enum", "fixed", "array", "map") else _plain(word)
    if "name" in schema:
        names[schema["name"]] = made
    if word in ("record", "error"):
        made.word = "record"
        made.parts = [node_of(one["type"], names) for one in schema["fields"]]
    elif word in ("array", "map"):
        made.parts = [node_of(schema["items" if word == "array" else "values"], names)]
    elif word == "enum":
        made.size = len([symbol.encode() for symbol in schema["symbols"]])
    elif word == "fixed":
        made.size = _size(schema["size"])
    return made


def why_not(value: bytes, root: Node, limits: Limits) -> str | None:
    """Why a decoder may not see a value, or None."""
    try:
        left = len(value) - _Walk(value, limits).over(root)
    except IndexError:
        return "it ends too early"
    except _Refused as refusal:
        return str(refusal)
    return f"{left} bytes are left over" if left else None


class _Refused(Exception):
    """What is wrong with the bytes."""


class _Walk:
    __slots__ = ("at", "data", "items", "limits")

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data, self.limits = data, limits
        self.at = self.items = 0

    def over(self, root: Node) -> int:
        """Where the value ends. What is open is a stack of what is left of each record, and of each block of a list."""
        data, most = self.data, self.limits.items
        open_: list[tuple[Iterator[Node], Node | None]] = [(iter((root,)), None)]
        while open_:
            inside, blocks = open_[-1]
            for node in inside:
                while node.word == "union":
                    node = node.parts[self._one_of(len(node.parts), "a branch")]
                self.items += 1
                if self.items > most:
                    raise self._too_many()
                if node.bits:
                    self._long(node.bits)
                elif node.sized:
                    size = self._long() if node.word in _LED else node.size
                    self.at += size
                    if not 0 <= size <= len(data) - self.at + size:
                        raise _Refused(f"a length of {size} where {len(data) - self.at + size} bytes are left")
                elif node.word == "enum":
                    self._one_of(node.size, "a symbol")
                elif node.word == "boolean":
                    if data[self.at] > 1:
                        raise _Refused("a boolean is neither 0 nor 1")
                    self.at += 1
                else:
                    if len(open_) > self.limits.depth:
                        raise _Refused(f"nested deeper than {self.limits.depth}")
                    open_.append((iter(node.parts), None) if node.word == "record" else (iter(()), node))
                    break
            else:
                open_.pop()
                if blocks is not None and (block := self._block(blocks)) is not None:
                    open_.append((block, blocks))
        return self.at

    def _block(self, node: Node) -> Iterator[Node] | None:
        """What comes in the next block of a list or map, or None at its end."""
        (item,) = node.parts
        nothing = _nothing(item) if node.word == "array" else 0
        while count := self._long():
            if count < 0:
                self._long()
                count = -count
            if self.items + count * max(nothing, 1) > self.limits.items:
                raise self._too_many()
            if not nothing:
                return repeat(item, count) if node.word == "array" else chain.from_iterable(repeat((KEY, item), count))
            self.items += count * nothing
        return None

    def _too_many(self) -> _Refused:
        return _Refused(f"more than {self.limits.items:,} items")

    def _one_of(self, count: int, what: str) -> int:
        number = self._long()
        if not 0 <= number < count:
            raise _Refused(f"{what} is number {number} of {count}")
        return number

    def _long(self, bits: int = 63) -> int:
        byte = self.data[self.at]
        self.at += 1
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1)
        number, shift = byte & 0x7F, 7
        while byte >= 0x80:
            if shift > 63:
                raise _Refused("a number has more than ten bytes")
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
        number = (number >> 1) ^ -(number & 1)
        if not -(1 << bits) <= number < 1 << bits:
            raise _Refused(f"a number has more than {bits + 1} bits")
        return number


def _nothing(node: Node) -> int:
    """Of how many items a type is that never has a byte; zero for all others, and for one that is within itself."""
    if node.nothing is None:
        node.nothing = 0
        parts = [_nothing(one) for one in node.parts] if node.word == "record" else []
        empty = node.word == "null" or (node.word == "fixed" and not node.size)
        node.nothing = 1 + sum(parts) if empty or (node.word == "record" and all(parts)) else 0
    return node.nothing


def _plain(word: str) -> Node:
    if word not in (*_WIDTHS, *_NUMBERS, *_LED, "boolean"):
        raise ValueError(f"there is no type {word!r}")
    return Node(word, size=_WIDTHS.get(word, 0))


def _size(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < LARGEST:
        raise ValueError(f"a fixed has the size {size!r}")
    return size


def refuse_decimal(schema: Mapping[str, Any]) -> None:
    """Refuse a decimal that Avro does not have."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision <= 1_000 or not precision:
        raise ValueError(f"a decimal has the precision {precision!r} and the scale {scale!r}")
