"""How a script is run in a session of its own, and how it dies: at a named point, or some time after an event."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.runtime.failpoints import ASKED, GROUP

# A run that lives a few seconds is faster without the optimising compiler.
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WATCHED = ("offsets", "commits")
_LOOK = 0.002


@dataclass(frozen=True, slots=True)
class Kill:
    """When a run dies: at a point such as `clock:before` of a batch, or a while after an event.

    The points `offsets` and `commits` are files of Spark that appear. Events are `start` (of the process), `lease` (it
    has taken the checkpoint) and `commit` (of that many batches by this process); the while is in seconds.
    """

    point: str
    batch: int = 0
    after: float = 0.0

    def __str__(self) -> str:
        match self.point:
            case "start" | "lease":
                return f"{self.point} +{self.after * 1000:.0f} ms"
            case "commit":
                return f"{self.batch} more +{self.after * 1000:.0f} ms"
        return f"{self.point}@{self.batch}"

    @property
    def named(self) -> bool:
        """Whether the run kills itself, by `PENSTOCK_KILL_AT`."""
        return self.point not in ("start", "lease", "commit", *WATCHED)


@dataclass(frozen=True, slots=True)
class Death:
    """How a run ended: its exit code, the batches it had committed, what it said, and how long each phase took."""

    code: int
    batches: int
    said: str
    seconds: float
    to_lease: float | None = None
    to_commit: float | None = None

    @property
    def killed(self) -> bool:
        """Whether it was killed, and did not end by itself."""
        return self.code == -signal.SIGKILL


class Run:
    """A script that runs in a session of its own, so that all of it can be found and killed."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        # What is killed cannot tidy up: Spark unpacks libraries of 70 MB into the temporary folder at each start.
        self.scratch = tempfile.mkdtemp(prefix="penstock-run-")
        java = f"{FAST_JAVA} -Djava.io.tmpdir={self.scratch}"
        given = {
            **os.environ,
            "JAVA_TOOL_OPTIONS": java,
            "TMPDIR": self.scratch,
            "SPARK_LOCAL_DIRS": self.scratch,
            ASKED: "",
            **(environment or {}),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.began = time.monotonic()
        with open(log, "wb") as file:
            # The shell tells the run its own process group; exec keeps the number.
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", f'{GROUP}=$$ exec "$@"', "sh", *command],
                env=given,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def alive(self) -> bool:
        """Whether the script still runs."""
        return self.process.poll() is None

    def wait(self, timeout: float = 600.0) -> int:
        """Wait for the end of all of it; the exit code."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"still running after {timeout:.0f} s:\n{self.said()}") from None
        self.kill()
        return code

    def send(self, number: int) -> None:
        """Send a signal to every process of the session."""
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def pause(self) -> None:
        """Stop every process of the session, and see that all of them have: a signal takes a moment to arrive."""
        states = {""}
        while states != {"T"}:
            self.send(signal.SIGSTOP)
            time.sleep(_LOOK)
            states = {state for _, session, state in _processes() if session == self.process.pid and state not in "ZX"}

    def kill(self) -> None:
        """Kill every process of the session, and see that none is left."""
        while True:
            self.send(signal.SIGKILL)
            self.process.poll()
            if not self.members():
                self.process.wait()
                shutil.rmtree(self.scratch, ignore_errors=True)
                return
            time.sleep(_LOOK)

    def members(self) -> list[int]:
        """The processes of the session that live: the driver, its JVM, its Python workers."""
        return [pid for pid, session, state in _processes() if session == self.process.pid and state not in "ZX"]

    def said(self) -> str:
        """What it printed, as far as it may interest."""
        return self.log.read_text(errors="replace")[-6000:]


def died(
    command: Sequence[str],
    checkpoint: Path,
    kill: Kill | None,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 600.0,
) -> Death:
    """Run a script until it ends by itself or is killed as asked."""
    asked = {ASKED: str(kill)} if kill is not None and kill.named else {}
    before, leases = _committed(checkpoint), _leases(checkpoint)
    run = Run(command, log, {**(environment or {}), **asked})
    seen: dict[str, float] = {}
    try:
        while run.alive:
            now = time.monotonic()
            if now - run.began > timeout:
                raise TimeoutError(f"still running after {timeout:.0f} s:\n{run.said()}")
            if "lease" not in seen and _leases(checkpoint) != leases:
                seen["lease"] = now
            done = _committed(checkpoint) - before
            if done and "commit" not in seen:
                seen["commit"] = now
            if kill is not None and _due(kill, checkpoint, done, seen):
                _until(lambda at=now: time.monotonic() - at >= kill.after or not run.alive)  # type: ignore[misc]
                break
            time.sleep(_LOOK)
    finally:
        if run.alive:
            run.kill()
        code = run.wait()
    ended = time.monotonic() - run.began
    to_lease = seen["lease"] - run.began if "lease" in seen else None
    to_commit = seen["commit"] - seen["lease"] if {"lease", "commit"} <= set(seen) else None
    return Death(code, _committed(checkpoint), run.said(), ended, to_lease, to_commit)


def python(*arguments: str) -> list[str]:
    """The command that runs this Python."""
    return [sys.executable, *arguments]


def _due(kill: Kill, checkpoint: Path, done: int, seen: Mapping[str, float]) -> bool:
    match kill.point:
        case "start":
            return True
        case "lease":
            return "lease" in seen
        case "commit":
            return done >= kill.batch
        case "offsets" | "commits":
            return (checkpoint / kill.point / str(kill.batch)).exists()
    return False


def _until(true: Callable[[], Any]) -> None:
    while not true():
        time.sleep(_LOOK)


def _committed(checkpoint: Path) -> int:
    """How many batches Spark has committed."""
    return max((int(name) for name in _names(checkpoint / "commits") if name.isdigit()), default=-1) + 1


def _leases(checkpoint: Path) -> int:
    names = _names(checkpoint / "penstock" / "epochs")
    return max((int(name) for name in names if name.isdigit()), default=0)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _processes() -> list[tuple[int, int, str]]:
    """Every process: its number, its session, its state."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                found.append((int(name), int(fields[3]), fields[0]))
    return found
