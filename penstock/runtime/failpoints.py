"""Where a process may be killed on purpose: named points that do nothing unless the environment asks for a death."""

from __future__ import annotations

import os
import signal

ASKED = "PENSTOCK_KILL_AT"
GROUP = "PENSTOCK_KILL_GROUP"


def reached(name: str, batch: int) -> None:
    """Die here, with the whole run, if `PENSTOCK_KILL_AT` is `name@batch`.

    Spark's Python workers have process groups of their own: `PENSTOCK_KILL_GROUP` names that of the driver and its JVM.
    """
    if os.environ.get(ASKED) == f"{name}@{batch}":
        if os.environ.get(GROUP):
            os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
        os.killpg(os.getpgid(0), signal.SIGKILL)
