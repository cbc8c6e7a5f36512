"""How many events a second does the generator make, with all columns and with a few?"""

from __future__ import annotations

import time

from examples.nexmark.columns import event_columns
from examples.nexmark.generator import COLUMNS, timeline

EVENTS = 1_000_000
FEW = frozenset(("event_type", "date_time", "auction", "bidder", "price"))


def main() -> None:
    """Make a million events of each, after a first few that fill the tables of words."""
    whole = frozenset(part.split()[0] for part in COLUMNS.split(","))
    asked = timeline(rate=1_000_000)
    for said, wanted in (("all columns", whole), (f"{len(FEW)} columns", FEW)):
        event_columns(asked, 0, range(1_000), wanted)
        began = time.process_time()
        for first in range(0, EVENTS, 250_000):
            event_columns(asked, 0, range(first, first + 250_000), wanted)
        print(f"{said}: {EVENTS / (time.process_time() - began):,.0f} events a second")


if __name__ == "__main__":
    main()
