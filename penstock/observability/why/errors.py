"""What cannot be explained, and why not."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.humanize import harmless


class Unexplained(PenstockError):
    """A question about a run that cannot be answered, and why; keys and names in it are shown harmlessly."""

    def __init__(self, what: str, why: str, instead: str) -> None:
        super().__init__(harmless(what), harmless(why), harmless(instead))
