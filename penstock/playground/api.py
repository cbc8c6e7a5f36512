"""JSON in, JSON out: which lessons there are, and what one gives when its controls stand so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError, did_you_mean
from penstock.playground.controls import AskedWrongly, checked
from penstock.playground.lesson import Lesson
from penstock.playground.lessons import LESSONS


def catalogue() -> dict[str, Any]:
    """Every lesson, as the front-end lists them."""
    return {"lessons": [lesson.plain() for lesson in LESSONS.values()]}


def played(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A lesson with its controls so: what is shown, and the code that says the same."""
    lesson = _lesson(name)
    values = checked(lesson.controls, given)
    scene = lesson.play(values).plain()
    return {"lesson": lesson.id, "values": values, "code": lesson.code(values), **scene}


def answer(text: str) -> str:
    """What `{"lesson": ..., "values": {...}}` asks for, or the error in its three parts; both as JSON."""
    try:
        asked = json.loads(text)
        if not isinstance(asked, dict) or not isinstance(asked.get("values", {}), dict):
            raise _unreadable()
        given = played(str(asked.get("lesson")), asked.get("values", {}))
    except (ValueError, RecursionError):
        return _refused(_unreadable())
    except PenstockError as error:
        return _refused(error)
    return json.dumps(given, allow_nan=False)


def _lesson(name: str) -> Lesson:
    if name not in LESSONS:
        raise AskedWrongly(
            f"there is no lesson {name!r}", "the playground has a fixed list of them", did_you_mean(name, LESSONS)
        )
    return LESSONS[name]


def _unreadable() -> AskedWrongly:
    return AskedWrongly(
        "what was asked cannot be read",
        "it is a JSON object with a lesson and its values",
        'write {"lesson": "two-clocks", "values": {}}',
    )


def _refused(error: PenstockError) -> str:
    return json.dumps({"error": {"what": error.what, "why": error.why, "instead": error.instead}})
