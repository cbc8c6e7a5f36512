"""Does the wheel install into an empty environment, and does it say which version it is?"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import penstock as ps

ROOT = Path(__file__).parents[2]


def test_the_wheel_installs_into_an_empty_environment(tmp_path: Path) -> None:
    built = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", str(ROOT), "-w", "dist"]
    subprocess.run(built, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("penstock-*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    bin = tmp_path / "empty" / "bin"
    subprocess.run([bin / "python", "-m", "pip", "install", "-q", "--no-index", str(wheel)], check=True)
    said = subprocess.run([bin / "penstock", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"penstock {ps.__version__}"
    played = "import penstock as ps; ps.events('at timestamp'); print(ps.sqlite('a.db', table='t').describe())"
    assert "a.db" in subprocess.run([bin / "python", "-c", played], capture_output=True, text=True, check=True).stdout
    script = "import os, penstock.spark.startup as one; print(os.access(one.SCRIPT, os.X_OK))"
    assert subprocess.run([bin / "python", "-c", script], capture_output=True, text=True, check=True).stdout == "True\n"
