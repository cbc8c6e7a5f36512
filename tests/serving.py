"""Does a command that serves pages say where, and end cleanly when it is asked to?"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=\S+")


def ends_cleanly(*words: str, how: signal.Signals, visit: Callable[[str], None] = lambda address: None) -> None:
    """Run a command of penstock that serves, visit what it says, and end it by a signal.

    It begins with Ctrl-C ignored, as a shell lets what it starts in the background begin.
    """
    command = [sys.executable, "-m", "penstock", *words, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as run:  # fmt: skip
        try:
            assert run.stdout is not None
            line = run.stdout.readline()
            address = ADDRESS.search(line)
            assert address, line
            visit(address[0])
            run.send_signal(how)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert (run.returncode, err) == (0, "")
    assert "ended" in out
