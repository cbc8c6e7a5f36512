"""What made a query fail, in our words where they are in Spark's: the error of a task comes wrapped in a trace."""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import PenstockError
from penstock.storage.local import CheckpointError

_OURS = re.compile(
    r"(?:^|\n)\s*(?:penstock[\w.]*\.)(\w+): (.+?)\n\s+why:     (.+?)\n\s+instead: (.+?)(?=\n|$)", re.DOTALL
)

_DAMAGED = re.compile("CHECKPOINT_FILE_CHECKSUM|CANNOT_LOAD_STATE_STORE|Stream is corrupted|Failed to read log file")
_FULL = re.compile("No space left on device|disk is full|Disk quota exceeded")
_SHARED = re.compile("concurrently using|Concurrent update to the log")


class PipelineFailed(PenstockError):
    """A task or Spark itself failed; the last lines of its trace say how."""


def told(failure: Any) -> BaseException:
    """The failure as an error in three parts."""
    if isinstance(failure, PenstockError):
        return failure
    text = str(failure)
    found = _OURS.search(text)
    if found is not None:
        kind = _named(PenstockError).get(found.group(1), PipelineFailed)
        return kind(found.group(2).strip(), found.group(3).strip(), found.group(4).strip())
    if _FULL.search(text):
        return PipelineFailed(
            "the pipeline stopped: a disk is full",
            _cause(text),
            "free some space and start again: nothing was half committed, and the run goes on where it stopped",
        )
    if isinstance(failure, BaseException) and not _from_spark(failure):
        return failure
    if _SHARED.search(text):
        return CheckpointError(
            "another query has written to this checkpoint",
            _cause(text),
            "stop one of the two for good; what is committed is whole, and a start goes on from there",
        )
    if _DAMAGED.search(text):
        return CheckpointError(
            "a file of Spark's in the checkpoint cannot be read, or is damaged",
            _cause(text),
            "restore the checkpoint from a copy, or start anew with an empty one",
        )
    return PipelineFailed(
        "the pipeline stopped: Spark could not finish a batch",
        _cause(text),
        "mend the cause and start again: it goes on with the batch that failed; PENSTOCK_LOG=FILE keeps Spark's log",
    )


def _named(kind: type[PenstockError]) -> dict[str, type[PenstockError]]:
    """Every error of ours by its name."""
    found = {kind.__name__: kind}
    for one in kind.__subclasses__():
        found |= _named(one)
    return found


def _from_spark(failure: BaseException) -> bool:
    return type(failure).__module__.startswith(("pyspark", "py4j"))


def _cause(text: str) -> str:
    """The line of a trace that says most: the last exception named in it."""
    # What Spark adds, the plan and its offsets, is no cause.
    text = text.partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in text.splitlines() if re.search(r"(Error|Exception)\b.*: ", line)]
    return lines[-1][:500] if lines else text.strip()[-500:]
