"""Do the commands say where the dashboard is, serve it as long as they run, and never fail for want of a port?"""

from __future__ import annotations

import signal
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from penstock.cli import run
from penstock.cli.demo import command
from penstock.dashboard import beside_run
from penstock.dashboard.embedded import PORT
from tests.browser.observed import Run
from tests.integration.cli.conftest import ONE
from tests.serving import ADDRESS, ends_cleanly


def opened(address: str) -> str:
    """What a browser gets that opens an address, and keeps the cookie that it is given."""
    jar = urllib.request.HTTPCookieProcessor()
    with urllib.request.build_opener(jar).open(address, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_its_address_and_ends_cleanly(tmp_path, how):
    Run(tmp_path / "run").batches(3)

    def visit(address: str) -> None:
        assert "<h1" in opened(address)

    ends_cleanly("ui", str(tmp_path / "run"), how=how, visit=visit)


def test_what_is_no_checkpoint_is_refused(penstock, tmp_path):
    said = penstock("ui", str(tmp_path / "nothing"), "--no-browser")
    assert said.code == 1
    assert "there is no checkpoint" in said.err
    assert penstock("ui", "s3a://lake/run", "--no-browser").code == 1


def test_another_address_needs_a_word(penstock, tmp_path):
    Run(tmp_path / "run").batches(1)
    said = penstock("ui", str(tmp_path / "run"), "--host", "10.1.2.3", "--no-browser")
    assert said.code == 1
    assert "--exposed" in said.err


def test_a_port_that_is_taken_is_told_in_three_parts(penstock, tmp_path):
    Run(tmp_path / "run").batches(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = penstock("ui", str(tmp_path / "run"), "--port", str(taken.getsockname()[1]), "--no-browser")
    assert said.code == 1
    assert "penstock ui --port 0" in said.err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_serves_it_and_takes_it_away_with_itself(penstock, tmp_path, monkeypatch, as_json):
    Path(tmp_path, "scores.py").write_text(ONE)
    seen = []

    def ran(pipeline, who, **how):
        Run(tmp_path / how["checkpoint"]).batches(2)
        address = ADDRESS.search(told())
        assert address
        seen.append((address[0], opened(address[0])))

    monkeypatch.setattr(run, "watched", ran)
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *text, file=None, **_: said.append((file, *text)))

    def told() -> str:
        return " ".join(str(part) for one in said for part in one[1:])

    assert penstock("run", "scores.py", "--ui", "--ui-port", "0", *(["--json"] if as_json else [])).code == 0
    assert "<h1" in seen[0][1]
    assert said[0][0] is (sys.stderr if as_json else sys.stdout)
    with pytest.raises(urllib.error.URLError):
        opened(seen[0][0])


def test_a_run_whose_checkpoint_is_elsewhere_refuses_before_it_starts(penstock, tmp_path, monkeypatch):
    Path(tmp_path, "scores.py").write_text(ONE)
    monkeypatch.setattr(run, "watched", lambda *_, **__: pytest.fail("it has started"))
    said = penstock("run", "scores.py", "--ui", "--checkpoint", "s3a://lake/run")
    assert said.code == 1
    assert "without --ui" in said.err


def test_where_the_usual_port_is_taken_another_is_found(tmp_path):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        except OSError:
            pass  # then somebody else has it
        made = beside_run.dashboard_of(str(tmp_path), None)
        made.server_close()
    assert made.port != PORT


def test_a_demo_that_can_serve_nothing_goes_on(tmp_path, monkeypatch, capsys):
    def refused(*_, **__):
        raise OSError("no sockets here")

    monkeypatch.setattr(beside_run, "Dashboard", refused)
    with command._dashboard(str(tmp_path)):
        ran = True
    assert ran
    assert "goes on without it" in capsys.readouterr().out
