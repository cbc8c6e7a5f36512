"""How fast are Nexmark's queries, beside Spark's own operators where they can express one, and beside PyFlink.

Use:

    python -m bench.nexmark [--quick] [--only TEXT] [--no-flink] [--json FILE]

Both read the same Parquet files in one session, in turns, 10,000 events a second of event time (patterns: 100), out of
order within groups of twenty; results are dropped where they are made. Batches have a million events, as in `make
bench`; of patterns and of q23, whose answer has the columns of three rows for each event, half a million. A query reads
the columns it looks at: Spark finds out which, we name them. Seconds per million events of the warm batches (the first
two are left out), and events per second. PyFlink has a process of its own, after the others (`bench/nexmark_flink.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import penstock as ps
from bench import beside
from bench.beside import IN_MEMORY, OURS, ROCKSDB, Figure, Kept, Question
from bench.nexmark_data import Site as Files
from bench.nexmark_flink import measured
from bench.spark import COLD_ROUNDS
from examples.nexmark.queries import QUERIES
from examples.nexmark.site import AUCTION, BID, PERSON, Site

STATELESS = ("q0", "q1", "q2", "q14", "q21", "q22")
# At thousands a second the favourite bidder of the favourite auction has more bids within five seconds than a key may
# have partial matches.
SLOWLY = 100
ROWS = 500_000  # of a file, of which two are a batch
SIZES = {**dict.fromkeys(("cep0", "cep1", "cep2", "cep3"), 250_000), "q23": 250_000}
_PRICES = ("auction", "bidder", "price")
_WHOLE_BID = (*_PRICES, "channel", "url", "extra")
_OPEN = ("id", "seller", "category", "expires", *_PRICES)
# What each query looks at, besides what an event is and when it happened.
LOOKED_AT = {
    "q0": (*_PRICES, "extra"), "q1": (*_PRICES, "extra"), "q2": ("auction", "price"),
    "q3": ("id", "name", "city", "state", "seller", "category"), "q4": _OPEN, "q5": ("auction",), "q6": _OPEN,
    "q7": (*_PRICES, "extra"), "q8": ("id", "name", "seller"), "q9": (*AUCTION, *_PRICES), "q11": ("bidder",),
    "q12": ("bidder",), "q14": (*_PRICES, "extra"), "q15": _PRICES, "q16": (*_PRICES, "channel"),
    "q17": ("auction", "price"), "q18": _WHOLE_BID, "q19": _WHOLE_BID, "q20": (*AUCTION, *BID),
    "q21": (*_PRICES, "channel", "url"), "q22": (*_PRICES, "channel", "url"), "q23": (*PERSON, *AUCTION, *BID),
    **dict.fromkeys(("cep0", "cep1", "cep2", "cep3"), _PRICES),
}  # fmt: skip


def questions(quick: bool) -> Iterator[Question]:
    """Every query; quickly, of few events."""
    from bench.nexmark_spark import NATIVE, UPDATES

    for name, query in QUERIES.items():
        rate = SLOWLY if name.startswith("cep") else Files.a_second
        rows, batches = (5_000, 3) if quick else (SIZES.get(name, ROWS), 5)
        data = {"nexmark": Files(2 * rows * batches, rows, LOOKED_AT[name], rate)}
        stores = (IN_MEMORY,) if name in STATELESS else (IN_MEMORY, ROCKSDB)
        theirs = dict.fromkeys(stores, NATIVE[name]) if name in NATIVE else {}
        figure = Figure(times=1) if theirs and name not in STATELESS else Figure()
        mode = "update" if name in UPDATES else "append"
        yield Question(name, data, {OURS: _asked(query)}, theirs, figure, mode=mode)


def _asked(query: Callable[[Site], Any]) -> Callable[[ps.Stream], Any]:
    return lambda events: query(Site(events))


def _beside_flink(results: list[dict[str, Any]], files: dict[str, Kept]) -> None:
    """What PyFlink took, beside the others; why, where it took nothing."""
    found = measured({name: kept.where for name, kept in files.items()})
    for one in results:
        said = found.get(one["job"])
        if isinstance(said, str):
            print(f"  {one['job']}: PyFlink: {said}", flush=True)
        elif said is not None:
            one["seconds_per_million"]["PyFlink"] = round(1e6 * said / files[one["job"]].data.events, 3)


def main() -> int:
    """The command."""
    parser = beside.asking(__doc__)
    parser.add_argument("--no-flink", action="store_true", help="do not install PyFlink and ask it, too")
    options = parser.parse_args()
    spark = beside.roomy()
    results: list[dict[str, Any]] = []
    files: dict[str, Kept] = {}
    for question in questions(options.quick):
        if not options.only or question.name in options.only.split(","):
            rounds = 0 if options.quick else 1 if results else COLD_ROUNDS
            (files[question.name],) = question.kept(options.data)
            results.append(beside.compare(spark, question, options.data, rounds))
    spark.stop()
    if not (options.quick or options.no_flink):
        _beside_flink(results, files)
    beside.told(results, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
