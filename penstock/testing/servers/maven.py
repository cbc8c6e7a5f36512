"""Java packages that tests, the demo and benchmarks need, from Maven Central, once, into a folder of a cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PenstockError

CACHE = "PENSTOCK_JARS"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


class NoJars(PenstockError):
    """Java packages that are not here and could not be had."""


def jars(name: str, *packages: str, alone: bool = False) -> Path:
    """The folder with some packages, `group:artifact:version`, and unless `alone` all they need."""
    folder = Path(os.environ.get(CACHE) or Path.home() / ".cache/penstock") / name
    if not (folder / "complete").exists():
        with _alone(folder):
            if not (folder / "complete").exists():
                _fetch(folder, packages, alone)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time: two that fetch into one folder would see each other's halves."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, packages: tuple[str, ...], alone: bool) -> None:
    if shutil.which("mvn") is None:
        raise NoJars(
            f"there is no mvn, and {packages[0]} is not here",
            "it comes from Maven Central",
            "install Maven (sudo apt-get install maven; brew install maven), or put the jars and an empty file "
            f"`complete` into {folder}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    wanted = "".join(_DEPENDENCY.format(*package.split(":"), _ALONE if alone else "") for package in packages)
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "pom.xml").write_text(_POM.format(dependencies=wanted))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise NoJars(
            f"Maven could not get {packages[0]}",
            "; ".join(said[-3:])[:400] or "it said nothing",
            f"see that Maven reaches a repository: mvn dependency:get -Dartifact={packages[0]}",
        )
    (folder / "complete").touch()
