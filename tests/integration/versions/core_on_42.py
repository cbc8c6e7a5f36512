"""The core runs on the oldest PySpark that is supported.

    python tests/integration/versions/core_on_42.py [VERSION] [TEST ...]

Makes an environment of its own in a temporary folder (PENSTOCK_VERSIONS keeps it in another, for the next time),
installs that PySpark and what Penstock needs, and runs the tests that stand for the core. Not part of `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]
OLDEST = "4.2.*"
CORE = tuple(f"tests/integration/spark/test_{name}.py" for name in ("cases", "running", "outputs", "places"))


def main(version: str = OLDEST, *tests: str) -> int:
    """Run the tests on a version; gives pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="penstock-versions-") as folder:
        python = environment(Path(os.environ.get("PENSTOCK_VERSIONS", folder)) / version.replace("*", "x"), version)
        # The package is found by its path: the same files that are tested on the newest version.
        given = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([python, "-c", "import pyspark; print('PySpark', pyspark.__version__)"], env=given, check=True)
        return subprocess.run([python, "-m", "pytest", *(tests or CORE)], cwd=ROOT, env=given, check=False).returncode


def environment(folder: Path, version: str) -> str:
    """The Python of an environment with that PySpark, made where it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, *needed("dev"), f"pyspark=={version}"], check=True)
        (folder / "made").touch()
    return str(python)


def needed(extra: str) -> list[str]:
    """What an extra of ours installs, with the extras that it names."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = []
    for one in extras[extra]:
        inner = re.fullmatch(r"penstock\[(.+)\]", one)
        found += [more for name in inner[1].split(",") for more in needed(name)] if inner else [one]
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
