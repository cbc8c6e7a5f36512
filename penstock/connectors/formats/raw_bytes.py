"""A message's bytes as the text that quarantine keeps, and back: readable where that is possible, replayable always."""

from __future__ import annotations

import base64
import re

MARK = "base64:"
LONGEST = 65_536  # bytes of a bad message that are kept; topic, partition and offset lead to the rest
_CUT = re.compile(r"… \([\d,]+ bytes in all\)$")


def kept(data: bytes | None) -> str:
    """Bytes as text: as they are, or in base64 after a mark where they are no text that every database takes."""
    if not data:
        return ""
    head = data[:LONGEST]
    more = f"… ({len(data):,} bytes in all)" if len(data) > LONGEST else ""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        cut = more and error.start >= len(head) - 3 and error.reason == "unexpected end of data"
        text = head[: error.start].decode() if cut else "\0"
    if "\0" in text or text.startswith(MARK):
        text = MARK + base64.b64encode(head).decode()
    return text + more


def bytes_of(text: str) -> bytes:
    """The bytes that a text was kept of; ValueError where only their beginning was."""
    if _CUT.search(text):
        raise ValueError("only the beginning of this message was kept; read it from its topic, partition and offset")
    return base64.b64decode(text.removeprefix(MARK), validate=True) if text.startswith(MARK) else text.encode()
