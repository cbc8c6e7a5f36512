"""The process that Spark forks its Python workers from, with PySpark's bytecode instead of a zip of sources.

Spark puts `pyspark.zip` first on a worker's path: sources, which Python compiles anew in every process (0.6 s). Where
the same PySpark lies unpacked on the path, as pip installs it, that one is taken.
"""

from __future__ import annotations

import os
import sys

_ZIP = os.path.join(os.sep, "python", "lib", "pyspark.zip")


def unzipped(path: list[str]) -> list[str]:
    """A search path without the zip of a PySpark that is on the path as a package too."""
    return [entry for entry in path if not _spare(entry, path)]


def _spare(entry: str, path: list[str]) -> bool:
    if not entry.endswith(_ZIP):
        return False
    package = entry.removesuffix(_ZIP)
    return os.path.dirname(package) in path and os.path.exists(os.path.join(package, "daemon.py"))


if __name__ == "__main__":
    sys.path[:] = unzipped(sys.path)
    from pyspark.daemon import manager

    manager()
