"""No message kills the process that decodes it, or takes more memory than is stated, whatever its bytes and schemas."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.properties.hostile_messages import FORMS, Block, block
from tests.properties.profile import ASKED

BLOCKS = int(ASKED) if ASKED else 400
STARTS = 2 if not ASKED else 8  # processes, one after the other or two at a time
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("start", range(STARTS))
def test_no_message_ends_the_process_that_decodes_it(tmp_path, start):
    """Each seed is a block of twenty good messages and up to five that are hostile; a death names its seed."""
    count = BLOCKS // STARTS + 1
    ended = decoded(tmp_path, [str(start * count), str(count)], None, timeout=60 + count)
    if ended is None:
        return
    seed = int((tmp_path / "seed").read_bytes())
    made = block(seed)
    hostile = [one for at, one in enumerate(made.messages) if at not in made.good]
    pytest.fail(
        f"seed {seed} ({made.form}): {ended}\nthe least that does it: {least(tmp_path, made, hostile)!r}\n"
        f"schemas: { {number: text[:500] for number, text in made.schemas.items()} }"
    )


def decoded(folder: Path, arguments: list[str], given: str | None, timeout: float) -> str | None:
    """How a process ended that decodes, or nothing where it ended well."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.properties.decoding", *arguments, str(folder)]
    try:
        ended = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it was not at its end after {timeout} seconds"
    if ended.returncode == 0:
        return None
    name = signal.Signals(-ended.returncode).name if ended.returncode < 0 else f"exit code {ended.returncode}"
    return f"{name}: {ended.stderr[-2_000:]}"


def least(folder: Path, made: Block, hostile: list[bytes], tries: int = 40) -> bytes | list[bytes]:
    """The message that does it, cut as far as it still does."""

    def fails(message: bytes) -> bool:
        given = json.dumps({"messages": [message.hex()], "schemas": made.schemas})
        return decoded(folder, [made.form], given, timeout=60) is not None

    guilty = next((one for one in hostile if fails(one)), None)
    if guilty is None:
        return hostile
    size = len(guilty) // 2
    while size and tries:
        for at in range(0, len(guilty), size):
            tries -= 1
            shorter = guilty[:at] + guilty[at + size :]
            if fails(shorter):
                guilty = shorter
                break
            if not tries:
                break
        else:
            size //= 2
    return guilty


def test_a_death_is_seen(tmp_path):
    """The fuzzer itself: where a decoder kills its process, or takes too much, the parent hears of it."""
    given = {"messages": [b"x".hex(), b"harmless".hex()], "schemas": {}}
    assert decoded(tmp_path, ["text"], json.dumps(given), timeout=60) is None
    for death, sign in (("kill", "SIGSEGV"), ("take", "MB were taken")):
        ended = decoded(tmp_path, ["text"], json.dumps({**given, "death": death}), timeout=60)
        assert ended is not None
        assert sign in ended


def test_a_block_is_of_its_seed_alone():
    assert [block(seed) for seed in range(50)] == [block(seed) for seed in range(50)]
    assert {block(seed).form for seed in range(50)} == set(FORMS)
