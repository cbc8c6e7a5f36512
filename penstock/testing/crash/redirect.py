"""Where a life writes: every output of the pipeline below a folder of its own, or in a table or topic of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from penstock.api.pipeline import Output, Pipeline
from penstock.connectors.console import Console
from penstock.connectors.memory import Memory
from penstock.errors import PenstockError, did_you_mean
from penstock.plan.output_schemas import target_of
from penstock.testing.crash.input_tape import Tape
from penstock.testing.crash.sink_rows import readable

# They keep nothing that could be looked at when the process is dead.
FORGETFUL = (Console, Memory)
NAMED = ("table", "topic")
SHORT = 28


@dataclass(frozen=True, slots=True)
class Kept:
    """The outputs that are proven, each with the name by which people know it, and those that are not, with why."""

    outputs: tuple[tuple[str, Output], ...]
    left_out: dict[str, str]


def kept(pipeline: Pipeline, without: Sequence[str] = ()) -> Kept:
    """Which outputs can be proven; one that cannot is refused, unless it was asked to leave it out."""
    named = list(_named(pipeline))
    unknown = [one for one in without if one not in dict(named)]
    if unknown:
        raise PenstockError(
            f"the pipeline {pipeline.name!r} has no output {unknown[0]!r}",
            f"it has: {', '.join(name for name, _ in named)}",
            did_you_mean(unknown[0], [name for name, _ in named]),
        )
    left_out: dict[str, str] = {}
    outputs = []
    for name, output in named:
        if name in without:
            left_out[name] = "left out, as asked"
        elif type(output.sink) in FORGETFUL:
            left_out[name] = "it keeps nothing that could be compared"
        else:
            _refuse_fixed(name, output.sink)
            outputs.append((name, output))
    if not outputs:
        raise PenstockError(
            f"the pipeline {pipeline.name!r} has no output that can be compared",
            "; ".join(f"{name}: {why}" for name, why in left_out.items()),
            'write its panes to ps.sqlite("answers.db", table="totals") as well',
        )
    return Kept(tuple(outputs), left_out)


def life_of(pipeline: Pipeline, tape: Tape, folder: Path, kept: Kept, token: str) -> Pipeline:
    """The same pipeline over the tape, with its sinks below the folder; the token is for tables and topics."""
    played = pipeline.rebuilt(tape.played(pipeline.flow))
    kept_ones = [
        new
        for old, new in zip(pipeline.outputs, played.outputs, strict=True)
        if any(old is output for _, output in kept.outputs)
    ]
    sinks = redirected(kept_ones, folder, token)
    outputs = tuple(replace(output, sink=sink) for output, sink in zip(kept_ones, sinks, strict=True))
    return replace(pipeline, outputs=outputs, staging=None)


def redirected(outputs: Sequence[Output], folder: Path, token: str) -> list[Any]:
    """Each sink with a place of its own; those that shared a file share one again."""
    places: dict[str, int] = {}
    made = []
    for output in outputs:
        sink = output.sink
        if _has(sink, "path"):
            number = places.setdefault(str(sink.path), len(places))
            plain = re.split(r"[/\\]", str(sink.path).rstrip("/\\"))[-1] or "sink"
            place = folder / "sinks" / str(number)
            place.mkdir(parents=True, exist_ok=True)
            changed: dict[str, Any] = {"path": str(place / plain)}
        else:
            changed = _elsewhere(sink, suffix(token, folder))
        made.append(with_history(replace(output, sink=replace(sink, **changed))).sink)
    return made


def with_history(output: Output) -> Output:
    """An output that keeps every answer beside those that stand: what was doubled and set right again is seen, too."""
    answers = output.kind == "panes" or target_of(output.plan, output.kind, "", output.name).answers
    if not answers or not _has(output.sink, "history"):
        return output
    return replace(output, sink=replace(output.sink, history=True))


def _elsewhere(sink: Any, behind: str) -> dict[str, Any]:
    """A table or topic of a life's own, which the sink is to make; names of databases have an end."""
    if _has(sink, "table"):
        return {"table": f"{sink.table[:SHORT]}{behind}", "create": True}
    from penstock.connectors.kafka.sink_options import New

    made = New(1, None if sink.create is None else sink.create.replication)
    return {"topic": f"{sink.topic}{behind}", "progress_topic": f"{sink.progress_topic}{behind}", "create": made}


def suffix(token: str, folder: Path) -> str:
    """What the table or topic of a life has behind its name."""
    return f"_prove_{token}_{re.sub(r'[^a-z0-9]', '', folder.name)}"


def _refuse_fixed(name: str, sink: Any) -> None:
    if not readable(sink) or not any(_has(sink, field) for field in ("path", *NAMED)):
        raise PenstockError(
            f"the output {name} cannot be proven",
            "each life needs a place of its own that can be looked into, and nobody knows where this one writes",
            f"leave it out with --without {name}: the other outputs are proven; a function of yours is safe if it is "
            "idempotent by batch.token",
        )


def _has(sink: Any, field: str) -> bool:
    return is_dataclass(sink) and any(one.name == field for one in fields(sink))


def _named(pipeline: Pipeline) -> Iterator[tuple[str, Output]]:
    """Each output with the id that its ledger has, less the name of the pipeline."""
    from penstock.coordinator.sink_targets import targets_of

    for (sink, _, _), output in zip(targets_of(pipeline), pipeline.outputs, strict=True):
        yield sink.removeprefix(f"{pipeline.name}/"), output
