"""When does Python look for cycles among the objects of messages? Between chunks, not while one is made.

A chunk is made of hundreds of thousands of objects that are let go one by one; looking through them finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


def uncollected(made: Generator[T]) -> Iterator[T]:
    """What a generator makes, with the collector at rest while it works and as it was while it waits."""
    try:
        while True:
            collecting = gc.isenabled()
            gc.disable()
            try:
                one = next(made)
            except StopIteration:
                return
            finally:
                if collecting:
                    gc.enable()
            yield one
    finally:
        made.close()
