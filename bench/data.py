"""What the benchmarks read: events in Parquet files, the same for the same seed.

Use:

    python bench/data.py DIRECTORY [--events 10000000] [--keys 1000] [--text] [--hot 0.8]
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BEGIN = 1_700_000_000_000_000
SECOND = 1_000_000


@dataclass(frozen=True)
class Data:
    """Events with a key, a value and a time, up to half a second out of order; `hot` is the share of key 0."""

    events: int = 10_000_000
    rows: int = 500_000
    keys: int = 1_000
    text: bool = False
    hot: float = 0.0
    a_second: int = 100_000
    seed: int = 7

    @property
    def schema(self) -> str:
        """The columns as `ps.directory` takes them."""
        return f"key {'string' if self.text else 'long'}, value long, at timestamp"

    def table(self, number: int) -> pa.Table:
        """The rows of one file."""
        rng = np.random.default_rng([self.seed, number])
        count = min(self.rows, self.events - number * self.rows)
        key = rng.integers(0, self.keys, count)
        key[rng.random(count) < self.hot] = 0
        made = (number * self.rows + np.arange(count)) * SECOND // self.a_second
        at = BEGIN + made - rng.integers(0, SECOND // 2, count)
        return pa.table(
            {
                "key": _names(self.keys).take(pa.array(key)) if self.text else pa.array(key),
                "value": pa.array(rng.integers(0, 1_000, count)),
                "at": pa.array(at).cast(pa.timestamp("us", tz="UTC")),
            }
        )


class Files(Protocol):
    """Events by the file: so many in all and in each, of so many keys, `a_second` of event time."""

    events: int
    rows: int
    keys: int
    a_second: int

    @property
    def schema(self) -> str:
        """The columns as `ps.directory` takes them."""

    def table(self, number: int) -> pa.Table:
        """The rows of one file."""


def write(data: Files, where: Path) -> list[Path]:
    """The files of some data, whose times of writing are a second apart so that their order is plain; kept if there."""
    where.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(-(-data.events // data.rows)):
        path = where / f"part-{number:05d}.parquet"
        paths.append(path)
        if path.exists():
            continue
        aside = where / f"_{path.name}"
        pq.write_table(data.table(number), aside, row_group_size=min(data.rows, 250_000))
        stamp = (BEGIN + number * SECOND) * 1_000
        os.utime(aside, ns=(stamp, stamp))
        aside.rename(path)
    return paths


def _names(count: int) -> pa.Array:
    return pa.array([f"user-{n:07d}" for n in range(count)])


def main() -> None:
    """Write the data that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=Data.events)
    parser.add_argument("--rows", type=int, default=Data.rows, help="of one file")
    parser.add_argument("--keys", type=int, default=Data.keys)
    parser.add_argument("--text", action="store_true", help="keys are text")
    parser.add_argument("--hot", type=float, default=Data.hot, help="share of the events on one key")
    asked = parser.parse_args()
    data = Data(asked.events, asked.rows, asked.keys, asked.text, asked.hot)
    paths = write(data, asked.directory)
    size = sum(path.stat().st_size for path in paths)
    print(f"{data.events:,} events in {len(paths)} files, {size / 1e6:,.0f} MB: {data.schema}")


if __name__ == "__main__":
    main()
