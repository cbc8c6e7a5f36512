"""Where do the figures of a benchmark go, besides the screen? Into a file, if one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def keep(figures: Any, where: Path | None) -> None:
    """Write figures as JSON."""
    if where is not None:
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(json.dumps(figures, indent=2) + "\n")
