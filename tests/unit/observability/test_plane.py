"""A plane goes through JSON and comes back the same."""

from __future__ import annotations

import json

from penstock.observability.time_plane import LATE, Dot, Mark, Plane, Shown
from penstock.types.timestamps import MAX_TIME, MIN_TIME

PLANE = Plane(
    "scores",
    (Dot(5, 7, "red", "3", "0"), Dot(None, 8, text="-inf"), Dot(1, 9, "-inf", fate=LATE, why="all windows expired")),
    (Mark(0, MIN_TIME), Mark(7, 4), Mark(9, MAX_TIME)),
    (Shown("red", MIN_TIME, MAX_TIME, 8, 0, "early", "3"), Shown("+inf", 0, 10, 9, 1, "on_time", "3", True, -1)),
)


def test_a_plane_comes_back_from_json():
    assert Plane.of(json.loads(json.dumps(PLANE.plain(), allow_nan=False))) == PLANE


def test_the_infinities_are_words():
    plain = PLANE.plain()
    assert [mark["watermark"] for mark in plain["marks"]] == ["-inf", 4, "+inf"]
    assert plain["panes"][0]["start"] == "-inf"


def test_a_field_of_a_later_version_is_left_out():
    plain = PLANE.plain()
    plain["marks"][0]["colour"] = "blue"
    assert Plane.of(plain) == PLANE
