"""JSON with a format version and a checksum: what every small file of ours in a checkpoint looks like."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from penstock.storage.local import CheckpointError

FORMAT = 1


def sealed(value: dict[str, Any]) -> bytes:
    """A value as bytes: its checksum, a line break, and JSON."""
    body = json.dumps({"format": FORMAT, **value}, separators=(",", ":"), sort_keys=True).encode()
    return checksum(body).encode() + b"\n" + body + b"\n"


def unsealed(data: bytes, where: str) -> dict[str, Any]:
    """The value that was sealed; refused where a bit was flipped, or where a newer version wrote it."""
    held, _, body = data.partition(b"\n")
    body = body.removesuffix(b"\n")
    if held.decode("ascii", "replace") != checksum(body):
        raise CheckpointError(
            f"the checkpoint file {where} is damaged",
            "its checksum does not match what it holds: it was cut short or changed",
            "restore the checkpoint from a copy, or start anew with an empty one",
        )
    value: dict[str, Any] = json.loads(body)
    if value["format"] > FORMAT:
        raise CheckpointError(
            f"the checkpoint file {where} has the format {value['format']}",
            f"it was written by a newer Penstock; this one reads formats up to {FORMAT}",
            "run it with the version that wrote it, or a newer one",
        )
    return value


def checksum(body: bytes) -> str:
    """A number that tells whether bytes are what they were."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()
