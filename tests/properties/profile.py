"""How many examples a law plays: few in `make test`, ten thousand in `make laws` (PENSTOCK_EXAMPLES)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ASKED = os.environ.get("PENSTOCK_EXAMPLES")


def law(examples: int = 100, part: int = 1) -> settings:
    """The settings of a law: so many examples, or as many as the environment asks for.

    Where an example plays a dozen values or more, a part of what is asked for will do: a fourth, a tenth.
    """
    most = -(-int(ASKED) // part) if ASKED else examples
    return settings(max_examples=most, deadline=None, suppress_health_check=list(HealthCheck))
