"""One idea to bend: what to look for, what can be turned, and how the run is made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.playground.controls import Control, Values
from penstock.playground.scene import Scene


@dataclass(frozen=True, slots=True)
class Preset:
    """Controls that stand in a telling way."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A page of the playground; `model` says what on it is not the engine but a model.

    `dragged` names the slider that is also moved by the watermark's line in the picture.
    """

    id: str
    title: str
    look: tuple[str, str, str]
    controls: tuple[Control, ...]
    presets: tuple[Preset, ...]
    play: Callable[[Values], Scene]
    code: Callable[[Values], str]
    model: str = ""
    dragged: str = ""

    def plain(self) -> dict[str, Any]:
        """What a page needs before anything is played."""
        return {
            "id": self.id,
            "title": self.title,
            "look": list(self.look),
            "model": self.model,
            "dragged": self.dragged,
            "controls": [control.plain() for control in self.controls],
            "presets": [{"name": preset.name, "values": preset.values} for preset in self.presets],
        }
