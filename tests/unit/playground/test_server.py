"""Who is let in by the playground's server, and what is told to the others."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading

import pytest

from penstock.errors import PenstockError
from penstock.playground.server import CSP, Playground
from tests.serving import ends_cleanly


@pytest.fixture(scope="module")
def server():
    with Playground(0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(server, method="GET", path="/", body=None, **headers):
    """A request with the key, unless its headers say otherwise; a header of None is left out."""
    given = {"Host": f"127.0.0.1:{server.port}", "Cookie": f"{server.cookie}={server.token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    talk = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    talk.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    if body is not None:
        given.setdefault("Content-Length", str(len(body)))
    for name, value in given.items():
        if value is not None:
            talk.putheader(name, value)
    talk.endheaders(body)
    answer = talk.getresponse()
    read = answer.read()
    talk.close()
    return answer.status, answer.headers, read


PLAY = json.dumps({"lesson": "two-clocks", "values": {}}).encode()


def test_the_address_with_the_key_lets_in_and_takes_the_key_out_of_sight(server):
    status, headers, _ = ask(server, path=f"/?token={server.token}", Cookie=None)
    assert (status, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize(
    "path", ["/", "/page.js", "/lessons.json", "/?token=", "/?token=guess", "/page.js?token=guess"]
)
def test_without_the_key_nothing_is_shown(server, path):
    assert ask(server, path=path, Cookie=None)[0] == 403


def test_another_servers_key_is_refused(server):
    assert ask(server, Cookie=f"{server.cookie}=guess")[0] == 403
    assert ask(server, Cookie=f"{server.cookie}=é".encode("latin-1").decode("latin-1"))[0] == 403
    assert ask(server, Cookie=";;=;")[0] == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8765"},
        {"Host": None},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_host_and_origin_are_looked_at_whatever_is_asked(server, method, wrong):
    status, _, body = ask(server, method, "/play", PLAY if method == "POST" else None, **wrong)
    assert status == 403
    assert b"panels" not in body


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_understood(server, method):
    assert ask(server, method)[0] == 501


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "/static/page.js", "//etc/passwd", "/worker.js", "/page.js/", "/\\x"]
)
def test_there_is_no_way_to_a_path(server, path):
    assert ask(server, path=path)[0] == 404


def test_every_answer_has_the_headers(server):
    for status, path in ((200, "/"), (200, "/page.js"), (404, "/x")):
        got, headers, _ = ask(server, path=path)
        assert got == status
        assert headers["Content-Security-Policy"] == CSP
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    assert "unsafe" not in CSP


def test_a_lesson_is_played(server):
    status, headers, body = ask(server, "POST", "/play", PLAY, Content_Type="application/json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body)["lesson"] == "two-clocks"


def test_what_is_not_json_or_too_long_is_refused(server):
    assert ask(server, "POST", "/play", PLAY, Content_Type="text/plain")[0] == 415
    assert ask(server, "POST", "/play", b"\xff", Content_Type="application/json")[0] == 400
    for length in ("16385", "-1", "x", None):
        assert ask(server, "POST", "/play", b"{}", Content_Type="application/json", Content_Length=length)[0] == 413
    assert ask(server, "POST", "/elsewhere", PLAY, Content_Type="application/json")[0] == 404


def test_nothing_on_the_pages_is_inline(server):
    page = ask(server)[2].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    assert not re.search(r"https?://", page)
    for name, held in server.pages.items():
        if name.endswith(".js"):
            text = held.decode()
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


def test_a_port_that_is_taken_is_told_in_three_parts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PenstockError, match=f"port {taken.getsockname()[1]}") as error:
            Playground(taken.getsockname()[1])
    assert "--port 0" in error.value.instead


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_its_address_and_ends_cleanly(how):
    ends_cleanly("play", how=how)
