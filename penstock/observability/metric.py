"""What is a metric: a name, what it counts, and its samples of one look at a run; and how it is written down.

Prometheus' text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.harmless import harmless
from penstock.observability.health.watcher import Look

COUNTER, GAUGE = "counter", "gauge"
LONGEST = 120  # signs of a label

Sample = tuple[Mapping[str, str], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; a sample whose value is None is not known and is left out."""

    name: str
    kind: str
    help: str
    samples: Callable[[Look], Iterable[Sample]]

    def lines(self, look: Look, more: Mapping[str, str]) -> Iterator[str]:
        """Its lines, with labels that every sample has; nothing where it has no samples."""
        found: dict[str, float] = {}
        for labels, value in self.samples(look):
            told = ",".join(f'{name}="{escaped(text)}"' for name, text in {**more, **labels}.items())
            if value is not None:
                found.setdefault(told, value)  # one of a name: two that look the same would spoil the whole page
        if found:
            yield f"# HELP {self.name} {self.help}"
            yield f"# TYPE {self.name} {self.kind}"
        for told, value in found.items():
            yield f"{self.name}{{{told}}} {number(value)}"


def escaped(text: str) -> str:
    """A label's value: not too long, printable, and without what would end it.

    >>> escaped('a"b\\\\c')
    'a\\\\"b\\\\\\\\c'
    """
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return harmless(shown).replace("\\", "\\\\").replace('"', '\\"')


def number(value: float) -> str:
    """A value: whole ones without a point."""
    return str(value) if isinstance(value, int) else repr(int(value)) if value.is_integer() else repr(value)
