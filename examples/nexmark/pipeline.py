"""Four questions about one site, answered at once: the events are read a single time, each answer has its own table."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.generator import nexmark
from examples.nexmark.queries import QUERIES
from examples.nexmark.site import Site

site = Site(nexmark(events=12_000, rate=300, generators=2, group=10))
names = ("q5", "q9", "q11", "cep3")
site_answers = ps.pipeline(
    "site-answers",
    *(QUERIES[name](site).write(ps.sqlite("nexmark.db", table=name)) for name in names),
    batch_rows=2_000,
)

if __name__ == "__main__":
    print(site_answers.run(checkpoint="checkpoints/site-answers", until="end"))
