"""Which lines of JSON are more than a decoder should see: too long, too full or too deep, by their bytes alone."""

from __future__ import annotations

import numpy as np

from penstock.connectors.formats.limits import Limits

_SIGNS = bytes(sign for sign in range(256) if sign not in b"[]{}")
_ALIKE = bytes.maketrans(b"{}", b"[]")
_LOWER, _OPENED = np.uint8(0x20), np.uint8(0x7B)  # [ and { differ by one bit
PART = 1 << 18


def beyond(text: bytes, starts: np.ndarray, ends: np.ndarray, limits: Limits) -> dict[int, str]:
    """The lines that are beyond a limit, by where they start, and why; one scan of the text, where none is near."""
    sizes = ends - starts
    found = dict.fromkeys(starts[sizes > limits.size].tolist(), f"the line is longer than {limits.size:,} bytes")
    near = sizes > limits.items  # an item has a byte at least
    if sizes.max(initial=0) > 2 * limits.depth:  # and what is opened and closed has two
        near[_with_many(text, starts, limits.depth)] = True
        near &= (sizes <= limits.size) & (sizes > min(limits.items, 2 * limits.depth))
    for start, end in zip(starts[near].tolist(), ends[near].tolist(), strict=True):
        why = reason(text[start:end], limits)
        if why is not None:
            found[start] = why
    return found


def _with_many(text: bytes, starts: np.ndarray, depth: int) -> np.ndarray:
    """The lines that may have more openings than that: every few openings are looked at, and two of a line show it."""
    data = np.frombuffer(text, np.uint8)
    # In parts that a processor's cache holds.
    parts = (at + np.flatnonzero((data[at : at + PART] | _LOWER) == _OPENED) for at in range(0, len(data), PART))
    some = np.concatenate([*parts, np.zeros(0, np.int64)])[:: max(1, depth // 2)]
    lines = np.searchsorted(starts, some, "right") - 1
    twice: np.ndarray = lines[1:][lines[1:] == lines[:-1]]
    return twice


def reason(line: bytes, limits: Limits) -> str | None:
    """Why one text of JSON is too full or too deep, or None."""
    if b"\\" in line:
        line = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(line.split(b'"')[::2])
    if outside.count(b",") + outside.count(b"[") + outside.count(b"{") > limits.items:
        return f"more than {limits.items:,} items"
    brackets, left = outside.translate(_ALIKE, _SIGNS), limits.depth
    while brackets.count(b"[") > left:
        if not left or b"[" * (left + 1) in brackets or b"[]" not in brackets:
            return f"nested deeper than {limits.depth}"
        brackets, left = brackets.replace(b"[]", b""), left - 1  # the innermost ones, all at once
    return None
