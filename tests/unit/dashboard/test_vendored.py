"""What was taken from others is as they published it, with its licence, and comes with the package."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from pathlib import Path

VENDOR = files("penstock.web").joinpath("static").joinpath("vendor")
ROOT = Path(__file__).parents[3]


def test_every_file_has_the_bytes_that_were_published_and_a_licence():
    sources = tomllib.loads(VENDOR.joinpath("SOURCES.toml").read_text(encoding="utf-8"))
    known = {name: digest for one in sources.values() for name, digest in one["sha256"].items()}
    there = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in VENDOR.iterdir()
             if one.name != "SOURCES.toml"}  # fmt: skip
    assert there == known
    for one in sources.values():
        assert one["integrity"].startswith("sha512-")
        assert any(name in one["licence"] for name in known)


def test_the_pages_are_part_of_the_package():
    held = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    folders = {one.rpartition("/")[0] for one in held["penstock"] if "/" in one}
    static = {file.parent.relative_to(ROOT / "penstock").as_posix() for file in (ROOT / "penstock").rglob("static/**/*")
              if file.is_file()}  # fmt: skip
    assert static <= folders
