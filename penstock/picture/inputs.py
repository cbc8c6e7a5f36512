"""What was seen of a case or a script: its plane, from a run of the reference engine.

Rows go to the engine and, a second time, through its row steps alone: these say which event has which time and key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from penstock.errors import CaseError, did_you_mean
from penstock.model.panes import Late, Pane, Quarantined
from penstock.observability.journal import FOLDER, Recorded, latest_of_each, plane_of as observed_plane
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Dot, Mark, Plane, Shown
from penstock.plan.graph import AnyStage
from penstock.plan.stages import Input, Plan
from penstock.reference.aggregates import Record
from penstock.reference.row_steps import Reading
from penstock.runtime.batch import Arrival, Outcome
from penstock.storage.local import CheckpointError, LocalStore
from penstock.testing.case_player import begun, play_step
from penstock.testing.cases import ENDINGS, Case, read
from penstock.testing.script import Script
from penstock.types.timestamps import event_time_of, show

ENGINE = "reference"


def of_case(case: Case) -> Plane:
    """The plane of a case, played to its end; what it expects is not looked at."""
    if case.refused is not None:
        raise CaseError(
            f"the case {case.name!r} has nothing to draw",
            "it says that its pipeline is refused, so no batch is played",
            "name a case that has steps",
        )
    script = begun(case, ENGINE)
    watched = Watched(script)
    for step in case.steps:
        play_step(script, step)
    return watched.plane(case.name)


class Watched:
    """All that was seen of a script since it is watched.

    >>> import penstock as ps
    >>> from penstock.testing import Script
    >>> timed = ps.events("at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    >>> watched = Watched(Script(timed.window(ps.tumbling("1 hour")).aggregate(n=ps.rows())))
    >>> _ = watched.script.batch([{"at": "12:00"}]), watched.script.end()
    >>> [pane.text for pane in watched.plane("an hour").panes]
    ['1']
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.dots: list[Dot] = []
        self.marks: list[Mark] = []
        self.panes: list[Shown] = []
        script.watchers.append(self.batch)

    def plane(self, title: str = "") -> Plane:
        """What was seen so far."""
        return Plane(title, tuple(self.dots), tuple(self.marks), tuple(self.panes))

    def batch(self, arrivals: list[Arrival], outcome: Outcome) -> None:
        """See one batch that was played."""
        now = self.script.run.now
        bad = {(one.source, one.partition, one.offset) for one in outcome.quarantined}
        late = _by_event(one for stage in outcome.stages for one in stage.late)
        for stage, keys, record in self._records(arrivals, now):
            source, partition = record.partition.split("/", 1)
            if (source, partition, record.offset) not in bad:
                key = _key(record.row[name] for name in keys)
                why = late.get(_event(source, partition, record.time, record.row), "")
                fate = LATE if why else COUNTED
                text = _text(stage, record.row)
                self.dots.append(Dot(record.time, now, key, text, record.partition, fate, why, record.offset))
        self.dots += [self._quarantined(one, now) for one in outcome.quarantined]
        self.marks.append(Mark(now, self.script.W))
        self.panes += [self._shown(pane, now) for pane in outcome.panes]

    def _records(self, arrivals: list[Arrival], now: int) -> Iterable[tuple[AnyStage, tuple[str, ...], Record]]:
        """The events of a batch as they reach the first stage that reads them."""
        flow, reading = self.script.flow, Reading(now)
        for one in flow.inputs:
            _, rows = reading.stamped(one, [a for a in arrivals if a.source == one.source.name])
            feed = flow.fed_by(one.source.name)[0]
            stage = flow.stages[feed.stage]
            keys = stage.entries[feed.entry].keys
            yield from ((stage, keys, record) for record in reading.prepared(stage, feed.input, rows))

    def _quarantined(self, bad: Quarantined, now: int) -> Dot:
        one = next(one for one in self.script.flow.inputs if one.source.name == bad.source)
        stage = self.script.stage
        keys = stage.entries[0].keys
        key = _key(bad.row[name] for name in keys) if all(name in bad.row for name in keys) else ""
        place = f"{bad.source}/{bad.partition}"
        return Dot(
            _time(one, bad.row, now), now, key, _text(stage, bad.row), place, QUARANTINED, bad.reason, bad.offset
        )

    def _shown(self, pane: Pane, now: int) -> Shown:
        plan = self.script.plan
        kinds = {column.name: column.type for column in plan.result_schema.columns}
        said = {name: _value(value, kinds[name]) for name, value in pane.values.items()}
        text = next(iter(said.values())) if len(said) == 1 else ", ".join(f"{name} {one}" for name, one in said.items())
        return Shown(
            _key(pane.key), pane.window.start, pane.window.end, now, pane.index, pane.timing, text, pane.final, pane.op
        )


def _event(source: str, partition: str, time: int, row: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return source, partition, time, repr(sorted(row.items()))


def _by_event(late: Iterable[Late]) -> dict[tuple[str, str, int, str], str]:
    """Why each late event is late; events that are alike share it, for they are late together."""
    return {_event(one.source, one.partition, one.event_time, one.row): _why(one) for one in late}


def _why(late: Late) -> str:
    missed = ", ".join(f"[{window}]" for window in late.windows)
    return f"the watermark was at {show(late.watermark)}" + (f", beyond {missed} and its lateness" if missed else "")


def _time(one: Input, row: Mapping[str, Any], now: int) -> int | None:
    """The event time of a row that is not used, where it has one that can be read."""
    if one.time is None or one.time.column is None:
        return now
    held = {column.name: column.type for column in one.source.schema.columns}.get(one.time.column)
    try:
        return event_time_of(row.get(one.time.column), "us" if held == "timestamp" else one.time.unit)
    except ValueError:
        return None


def _key(values: Iterable[object]) -> str:
    """The values of the key columns as one text; an empty text is told from no key."""
    return ", ".join(_value(value) or '""' for value in values)


def _text(stage: AnyStage, row: Mapping[str, Any]) -> str:
    """What the aggregates read of a row: the value where it is one, else the names too."""
    read = Counter(aggregate.column for _, aggregate in stage.aggregates) if isinstance(stage, Plan) else Counter()
    said = {name: _value(row[name]) for name in read if name is not None and name in row}
    return next(iter(said.values())) if len(said) == 1 else ", ".join(f"{name} {one}" for name, one in said.items())


def _value(value: object, kind: str = "") -> str:
    if isinstance(value, str):
        return value
    if kind == "timestamp" and isinstance(value, int):
        return show(value)
    if value is None or isinstance(value, (bool, int, float, list, tuple, dict)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return value.isoformat() if isinstance(value, date) else str(value)


KEPT = ("dots", "marks", "panes")


def plane_of(source: str, case: str | None = None) -> Plane:
    """The plane that a file holds or gives when it is played; of a checkpoint, that of what was observed."""
    path = Path(source)
    if (path / "penstock/identity").is_file():
        return _observed(source)
    if not path.is_file():
        near = [str(one) for one in path.parent.glob("*") if one.suffix in ENDINGS] if path.parent.is_dir() else []
        raise CaseError(
            f"{source} is a folder" if path.is_dir() else f"there is no file {source}",
            "a picture is drawn of a case file, or of the checkpoint of a run",
            did_you_mean(source, near, "name a file that ends in " + ", ".join(ENDINGS)),
        )
    kept = _kept(path)
    return of_case(chosen(read(path), case, source)) if kept is None else kept


def chosen(cases: list[Case], name: str | None, source: str) -> Case:
    """The case of that name, or the only one of which it is a part."""
    names = [case.name for case in cases]
    if name is None:
        if len(cases) == 1:
            return cases[0]
        raise CaseError(
            f"{source} has {len(cases)} cases", f"they are: {'; '.join(names)}", f"say which: --case {names[0]!r}"
        )
    found = [case for case in cases if case.name == name] or [
        case for case in cases if name.casefold() in case.name.casefold()
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise CaseError(
            f"{len(found)} cases of {source} have {name!r} in their name",
            f"they are: {'; '.join(case.name for case in found)}",
            f"say more of it: --case {found[0].name!r}",
        )
    raise CaseError(f"{source} has no case {name!r}", f"its cases are: {'; '.join(names)}", did_you_mean(name, names))


def _observed(checkpoint: str) -> Plane:
    """The plane of the batches that are still kept of a run."""
    from penstock.checkpoint.identity import read_identity  # needs more than the standard library

    seen = latest_of_each(Recorded.at(checkpoint).news())
    if not seen:
        raise CheckpointError(
            f"nothing of the run of {checkpoint} was observed",
            f"a run keeps what it observes under {FOLDER}, unless it is run with observe=False",
            "run the pipeline for some batches, and ask again",
        )
    identity = read_identity(LocalStore(checkpoint))
    assert identity is not None
    return observed_plane(seen, identity.name)


def _kept(path: Path) -> Plane | None:
    """The plane that a JSON file holds; None where it is a file of cases, or cannot be read as either."""
    if path.suffix != ".json":
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # `read` says what is wrong with it
    if not isinstance(said, dict) or not any(name in said for name in KEPT):
        return None
    try:
        return _checked(Plane.of(said))
    except (TypeError, AttributeError, ValueError) as error:
        raise CaseError(
            f"{path} is no plane",
            f"{' and '.join(KEPT)} are lists of values with names: {error}",
            "keep one with json.dumps(plane.plain())",
        ) from None


def _checked(plane: Plane) -> Plane:
    """Times are whole numbers and texts are text: a file may say anything."""
    for one in (*plane.dots, *plane.marks, *plane.panes):
        for name in ("event_time", "now", "watermark", "start", "end", "index", "op"):
            value = getattr(one, name, 0)
            if type(value) is not int and not (name == "event_time" and value is None):
                raise ValueError(f"{name} is {value!r}")
        for name in ("key", "text", "fate", "why", "timing"):
            if not isinstance(getattr(one, name, ""), str):
                raise ValueError(f"{name} is {getattr(one, name)!r}")
    if not isinstance(plane.title, str):
        raise ValueError(f"title is {plane.title!r}")
    return plane
