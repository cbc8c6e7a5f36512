"""All queries by their names."""

from __future__ import annotations

from collections.abc import Callable

import penstock as ps
from examples.nexmark import joins, patterns, rows, running, windows, winning
from examples.nexmark.site import Site

Query = Callable[[Site], ps.Stream | ps.Panes]

QUERIES: dict[str, Query] = {
    "q0": rows.q0, "q1": rows.q1, "q2": rows.q2, "q3": joins.q3, "q4": winning.q4, "q5": windows.q5,
    "q6": winning.q6, "q7": windows.q7, "q8": windows.q8, "q9": winning.q9, "q11": windows.q11, "q12": windows.q12,
    "q14": rows.q14, "q15": running.q15, "q16": running.q16, "q17": running.q17, "q18": running.q18,
    "q19": running.q19, "q20": joins.q20, "q21": rows.q21, "q22": rows.q22, "q23": joins.q23,
    "cep0": patterns.cep0, "cep1": patterns.cep1, "cep2": patterns.cep2, "cep3": patterns.cep3,
}  # fmt: skip
