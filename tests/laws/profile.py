"""How many examples a law plays: few in `make test`, ten thousand in `make laws` (PENSTOCK_EXAMPLES)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ASKED = os.environ.get("PENSTOCK_EXAMPLES")


def law(examples: int = 100) -> settings:
    """The settings of a law: so many examples, or as many as the environment asks for."""
    return settings(
        max_examples=int(ASKED) if ASKED else examples, deadline=None, suppress_health_check=list(HealthCheck)
    )
