"""Which Python do Spark's processes run? This one, with PySpark's bytecode instead of a zip of sources.

Spark puts `pyspark.zip` first on the path of each Python process it starts: sources, which Python compiles anew in
every one (0.6 to 0.8 s, and a first batch needs six of them, one after another). Where the same PySpark lies unpacked
beside it, as pip installs it, a script leaves the zips out of the path and becomes this Python.
"""

from __future__ import annotations

import os
import sys

SCRIPT = os.path.join(os.path.dirname(__file__), "unzipped-python.sh")
PYTHON = "PENSTOCK_PYTHON"  # what the script becomes


def worker_python(spark_home: str, package: str) -> dict[str, str]:
    """What the environment of a driver must say, for the Spark of that folder and the PySpark that was imported."""
    if os.path.realpath(spark_home) != os.path.realpath(package) or not os.access(SCRIPT, os.X_OK):
        return {"PYSPARK_PYTHON": sys.executable}
    return {"PYSPARK_PYTHON": SCRIPT, PYTHON: sys.executable}
