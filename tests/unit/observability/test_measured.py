"""The size of a checkpoint is that of its files, and is not looked at too often."""

from __future__ import annotations

import os

from penstock.observability import checkpoint_size
from penstock.observability.checkpoint_size import Measured, counted
from penstock.storage.local import LocalStore


def test_files_of_every_folder_are_counted_and_links_are_not_followed(tmp_path):
    (tmp_path / "state" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "a").write_bytes(b"x" * 1000)
    (tmp_path / "b").write_bytes(b"x" * 10)
    os.symlink("/", tmp_path / "state" / "elsewhere")
    link = (tmp_path / "state" / "elsewhere").lstat().st_size
    assert counted(str(tmp_path)) == {"bytes": 1010 + link, "files": 3}


def test_it_ends_with_very_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_size, "MOST_FILES", 3)
    for number in range(10):
        (tmp_path / str(number)).write_bytes(b"x")
    assert counted(str(tmp_path)) == {"bytes": 3, "files": 3, "more": 1}


def test_it_is_looked_at_now_and_then(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x")
    held = Measured(LocalStore(str(tmp_path)))
    assert held.now() == {"bytes": 1, "files": 1}
    (tmp_path / "b").write_bytes(b"x")
    assert held.now() == {"bytes": 1, "files": 1}
    monkeypatch.setattr(checkpoint_size, "EVERY_SECONDS", 0.0)
    assert held.now() == {"bytes": 2, "files": 2}


def test_elsewhere_nothing_is_known(tmp_path):
    assert Measured(object()).now() == {}
    assert counted(str(tmp_path / "gone")) == {"bytes": 0, "files": 0}
