"""The dashboard beside a run: started before Spark is, and ended with the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.dashboard.embedded import PORT, place_of
from penstock.dashboard.server import Dashboard
from penstock.errors import PenstockError
from penstock.storage.local import local_path


def dashboard_of(checkpoint: str, port: int | None) -> Dashboard:
    """A dashboard of a run that is about to begin: on the port that is named, else on the usual one or any free one."""
    local = local_path(checkpoint)
    if local is None:
        raise PenstockError(
            f"the checkpoint {checkpoint} is not on a disk of this machine",
            "the dashboard reads what is observed beside the checkpoint, without Spark",
            "run it without --ui, or with a checkpoint on a local disk",
        )
    if port is not None:
        return Dashboard(local, place_of(port), command="penstock run", port_option="--ui --ui-port")
    try:
        return Dashboard(local, place_of(PORT), command="penstock run", port_option="--ui --ui-port")
    except PenstockError:
        return Dashboard(local, place_of(0), command="penstock run", port_option="--ui --ui-port")


@contextmanager
def beside(dashboard: Dashboard, say: Callable[[str], None]) -> Iterator[None]:
    """Serve a dashboard while something runs, and say where it is."""
    dashboard.start()
    try:
        say(dashboard.address)
        yield
    finally:
        dashboard.stop()


@contextmanager
def if_possible(checkpoint: str, say: Callable[[str | None], None]) -> Iterator[None]:
    """The same for a run that must go on in any case: where no dashboard can be served, None is said."""
    try:
        made = dashboard_of(checkpoint, None)
    except (PenstockError, OSError):
        say(None)
        yield
        return
    with beside(made, say):
        yield
