"""A pipeline in the words of the page: the same texts are shown as code and made into what is played."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.api.events import events
from penstock.api.windowed import Panes
from penstock.testing.case_expressions import make

SCHEMA = "id long, team string, points long, at timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One pipeline of windows; each part is written as the call that makes it."""

    watermark: str = 'ps.bounded("1 minute")'
    window: str = 'ps.tumbling("5 minutes")'
    lateness: str = "0"
    trigger: str = "ps.at_watermark()"
    mode: str = ""
    aggregate: dict[str, str] = field(default_factory=lambda: {"points": 'ps.sum("points")'})
    where: str = ""
    time: str = "event"

    def panes(self) -> Panes:
        """The pipeline."""
        stream = events(SCHEMA, name="scores")
        if self.time == "processing":
            timed = stream.processing_time()
        else:
            timed = stream.event_time("at", watermark=make(self.watermark, "watermark"))
        if self.where:
            timed = timed.where(self.where)
        windowed = timed.key_by("team").window(make(self.window, "window"), lateness=self.lateness)
        windowed = windowed.trigger(make(self.trigger, "trigger"))
        if self.mode:
            windowed = getattr(windowed, self.mode)()
        return windowed.aggregate(**{name: make(text, "aggregate") for name, text in self.aggregate.items()})

    def code(self, name: str = "totals") -> str:
        """The pipeline as one would write it."""
        lines = [f'ps.events("{SCHEMA}", name="scores")']
        if self.time == "processing":
            lines.append(".processing_time()")
        else:
            lines.append(f'.event_time("at", watermark={self.watermark})')
        if self.where:
            lines.append(f".where({self.where!r})")
        late = "" if self.lateness == "0" else f', lateness="{self.lateness}"'
        lines += ['.key_by("team")', f".window({self.window}{late})"]
        if self.trigger != "ps.at_watermark()":
            lines.append(f".trigger({self.trigger})")
        if self.mode:
            lines.append(f".{self.mode}()")
        lines.append(f".aggregate({', '.join(f'{key}={text}' for key, text in self.aggregate.items())})")
        body = "\n".join(f"    {line}" for line in lines)
        return f"{name} = (\n{body}\n)"


HEAD = "import penstock as ps\n\n"


def program(*parts: str) -> str:
    """Parts of code as one file."""
    return HEAD + "\n\n".join(parts) + "\n"
