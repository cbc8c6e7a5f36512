"""The memory of a stage at rest: the head says its runs, and each run is a part that is written once."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.parts import Part
from penstock.engine.state.runs import Run
from penstock.engine.state.snapshot import Saved

Runs = tuple[Run[Any], ...]
_RUN = ("number", "rows", "live", "records", "low", "high", "due_at", "wake_at")


def saved_runs(said: Mapping[str, Any], groups: Mapping[str, Runs], known: Container[str]) -> Saved:
    """Groups of runs as bytes, with what else is to be said; parts that are known are not written again."""
    parts: dict[str, bytes] = {}
    for runs in groups.values():
        for run in runs:
            if run.part.name is None or run.part.name not in known:
                name, data = run.part.written()
                if name not in known:
                    parts[name] = data
    listed = {
        group: [[run.part.name, run.took, *(getattr(run, name) for name in _RUN)] for run in runs]
        for group, runs in groups.items()
    }
    return Saved(framed({**said, "runs": listed}), parts)


def named_parts(head: bytes) -> tuple[str, ...]:
    """The names of all parts that a head speaks of."""
    said, _ = unframed(head)
    return tuple(run[0] for runs in said["runs"].values() for run in runs)


def restored_runs(head: bytes, fetch: Callable[[str], bytes]) -> tuple[dict[str, Any], dict[str, Runs]]:
    """What a head says, and its groups of runs, each part of which is fetched when it is first needed."""
    said, _ = unframed(head)

    def run(given: list[Any]) -> Run[Any]:
        name, took, *numbers = given
        return Run(part=Part(name=name, fetch=fetch), took=tuple(took), **dict(zip(_RUN, numbers, strict=True)))

    return said, {group: tuple(map(run, runs)) for group, runs in said["runs"].items()}
