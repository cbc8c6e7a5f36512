"""Which rules hold in this batch: rows by their ids, the same on every shard, to be read and never written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any


class Rules(Mapping[Any, Mapping[str, Any]]):
    """Rules by id, in the order of their last change.

    >>> rules = Rules([("big", {"id": "big", "limit": 100}, 7)])
    >>> rules["big"]["limit"], rules.batch("big")
    (100, 7)
    """

    __slots__ = ("_rows", "_since")

    def __init__(self, rules: Iterable[tuple[Any, dict[str, Any], int]] = ()) -> None:
        self._rows: dict[Any, Mapping[str, Any]] = {}
        self._since: dict[Any, int] = {}
        for name, row, since in rules:
            self._rows[_one_nan(name)] = MappingProxyType(row)
            self._since[_one_nan(name)] = since

    def __getitem__(self, name: Any) -> Mapping[str, Any]:
        return self._rows[_one_nan(name)]

    def __contains__(self, name: object) -> bool:
        return _one_nan(name) in self._rows

    def get(self, name: Any, default: Any = None) -> Any:
        """The rule of an id, or else the default; written out, for it is asked for every event."""
        return self._rows.get(_one_nan(name), default)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr({name: dict(row) for name, row in self._rows.items()})

    def batch(self, name: Any) -> int:
        """The batch since which a rule holds as it is."""
        return self._since[_one_nan(name)]


def _one_nan(name: Any) -> Any:
    """An id as it is looked up: there is one NaN."""
    if isinstance(name, tuple):
        return tuple(map(_one_nan, name))
    return math.nan if name != name else name


NONE = Rules()
