"""Whose picture is asked for: the case of a file, a plane that was kept as JSON, or the run of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.errors import CaseError, did_you_mean
from penstock.observability.journal import Recorded, latest_of_each, plane_of as observed_plane
from penstock.observability.recorder import FOLDER
from penstock.observability.time_plane import Plane
from penstock.picture.inputs import of_case
from penstock.storage.local import CheckpointError, LocalStore
from penstock.testing.cases import ENDINGS, Case, read

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
            f"{path} is no plane", f"{' and '.join(KEPT)} are lists of values with names: {error}",
            "keep one with json.dumps(plane.plain())",
        ) from None  # fmt: skip


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
