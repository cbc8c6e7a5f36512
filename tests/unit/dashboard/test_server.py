"""Who is let in by the dashboard's server, what is told to the others, and that nothing can be changed or reached.

The numbers are rows of docs/faults.md.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from importlib.resources import files

import pytest

import penstock as ps
from penstock.dashboard import embedded as places
from penstock.dashboard.embedded import Place, place_of
from penstock.dashboard.server import LISTENERS, Dashboard
from penstock.errors import PenstockError
from penstock.observability.run_metadata import keep_plan
from penstock.web.responses import CSP
from tests.browser.observed import Run

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("run"), teams=("red", HOSTILE), source="<b>scores</b>").batches(40)


@pytest.fixture(scope="module")
def server(run):
    made = Dashboard(str(run.root)).start()
    deadline = time.monotonic() + 10
    while not made.followed.standing and time.monotonic() < deadline:
        time.sleep(0.02)
    yield made
    made.stop()


def ask(server, path="/", method="GET", body=None, **headers):
    """A request with the key, unless its headers say otherwise; a header of None is left out."""
    given = {"Host": f"127.0.0.1:{server.port}", "Cookie": f"{server.cookie}={server.token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    talk = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    talk.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            talk.putheader(name, value)
    talk.endheaders(body)
    answer = talk.getresponse()
    read = b"" if answer.headers["Content-Type"].startswith("text/event-stream") else answer.read()
    talk.close()
    return answer.status, answer.headers, read


def news(server, until, **headers):
    """What the stream tells, event by event, until something has come."""
    lines = [f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.cookie}={server.token}\r\n"]
    lines += [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as talk:
        talk.sendall("".join([*lines, "\r\n"]).encode())
        read = b""
        while not (until(read) and read.endswith(b"\n\n")):
            more = talk.recv(65_536)
            assert more, read[-500:]
            read += more
    body = read.partition(b"\r\n\r\n")[2].decode()
    found = []
    for block in body.split("\n\n"):
        told = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in told:
            found.append((told["event"], json.loads(told["data"]), told.get("id")))
    return found


PATHS = ["/", "/page.js", "/events", "/plan.json", "/why.json?key=red", "/metrics"]


def test_row_24_the_address_with_the_key_lets_in_and_takes_the_key_out_of_sight(server):
    status, headers, _ = ask(server, f"/?token={server.token}", Cookie=None)
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]


@pytest.mark.parametrize("path", [*PATHS, "/?token=", "/?token=guess", "/events?token=guess"])
def test_row_24_without_the_key_nothing_is_shown(server, path):
    assert ask(server, path, Cookie=None)[0] == 403
    assert ask(server, path, Cookie=f"{server.cookie}=guess")[0] == 403


def test_row_24_the_key_opens_no_page_but_the_first_from_an_address(server):
    assert ask(server, f"/events?token={server.token}", Cookie=None)[0] == 403
    assert ask(server, "/plan.json", Cookie=None, Authorization=f"Bearer {server.token}")[0] == 403


def test_row_24_a_machine_that_asks_for_numbers_has_the_key_in_a_header(server):
    assert ask(server, "/metrics", Cookie=None, Authorization=f"Bearer {server.token}")[0] == 200
    for given in ("Bearer guess", "Bearer ", f"Basic {server.token}"):
        assert ask(server, "/metrics", Cookie=None, Authorization=given)[0] == 403


def test_machines_are_told_the_numbers_of_the_run(server, run):
    from prometheus_client.parser import text_string_to_metric_families

    status, headers, body = ask(server, "/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    told = {one.name: one for family in text_string_to_metric_families(body.decode()) for one in family.samples}
    assert told["penstock_events_total"].value == run.totals.read
    assert told["penstock_events_total"].labels == {"pipeline": "team-scores"}
    assert told["penstock_running"].value == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8766"},
        {"Host": None},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_row_24_host_and_origin_are_looked_at_whatever_is_asked(server, method, wrong):
    for path in ("/", "/events", "/why.json?key=red"):
        assert ask(server, path, method, **wrong)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", PATHS)
def test_row_24_nothing_can_be_changed(server, method, path):
    status, headers, _ = ask(server, path, method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/static/page.js", "//etc/passwd", "/vendor/uPlot.min.css", "/page.js/",
     "/\\x", "/penstock/identity", "/SOURCES.toml", "/LICENSE.uPlot.txt", "/page.js%00.html", "//["],
)  # fmt: skip
def test_row_24_there_is_no_way_to_a_path(server, path):
    assert ask(server, path)[0] == 404


def test_row_24_every_answer_has_the_headers(server):
    for status, path in ((200, "/"), (200, "/page.js"), (200, "/events"), (200, "/plan.json"), (404, "/x")):
        got, headers, _ = ask(server, path)
        assert got == status, path
        assert headers["Content-Security-Policy"] == CSP
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    assert "unsafe" not in CSP


def test_row_24_nothing_on_the_pages_is_inline_or_from_elsewhere(server):
    page = ask(server)[2].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|<style|https?://", page)
    ours = [one for one in files("penstock.dashboard").joinpath("static").iterdir() if one.name.endswith(".js")]
    assert len(ours) > 10
    for file in ours:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), file.name


def test_row_24_why_is_asked_by_values_and_told_as_text(server, run):
    window = next(one for one in run.sums)
    asked = f"/why.json?stage=0&key={HOSTILE.replace(' ', '%20')}&start={window[1]}&end={window[1] + 10_000_000}"
    lines = json.loads(ask(server, asked)[2])["lines"]
    assert HOSTILE in lines[0]
    for wrong in (
        "?key=../../etc/passwd",
        "?key=red&start=x&end=y",
        "?event=../../x/1",
        "?stage=-1&key=red&start=9",
        "",
    ):
        assert set(json.loads(ask(server, f"/why.json{wrong}")[2])["error"]) == {"what", "why", "instead"}


def test_row_24_more_listeners_than_there_is_room_for_are_refused(run):
    made = Dashboard(str(run.root)).start()
    held = []
    try:
        for _ in range(LISTENERS):
            talk = socket.create_connection(("127.0.0.1", made.port), timeout=10)
            host, key = f"127.0.0.1:{made.port}", f"{made.cookie}={made.token}"
            talk.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: {key}\r\n\r\n".encode())
            assert talk.recv(12).endswith(b"200")
            held.append(talk)
        assert ask(made, "/events")[0] == 503
        assert ask(made, "/")[0] == 200
    finally:
        for talk in held:
            talk.close()
        made.stop()


@pytest.mark.parametrize("host", ["10.0.0.7", "example.org", "192.168.1.5"])
def test_row_24_another_address_is_refused_without_a_word(host):
    with pytest.raises(PenstockError, match="others than this machine") as error:
        place_of(0, host)
    assert "--exposed" in error.value.instead
    assert place_of(0, host, exposed=True).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1"])
def test_row_24_an_address_without_one_name_is_refused_in_any_case(host):
    with pytest.raises(PenstockError, match="cannot be served"):
        place_of(0, host, exposed=True)


def test_row_25_a_key_that_is_handed_in_is_used_and_never_shown(monkeypatch, run):
    monkeypatch.setenv(places.TOKEN, "too-short")
    with pytest.raises(PenstockError) as error:
        place_of(0)
    assert "too-short" not in str(error.value)
    monkeypatch.setenv(places.TOKEN, "0123456789abcdef")
    assert place_of(0) == Place(0, "127.0.0.1", "0123456789abcdef")


def test_row_25_secrets_of_sinks_and_sources_are_in_nothing_that_is_served(run):
    totals = (
        ps.kafka("scores", servers="localhost:9092", schema="team string, at timestamp",
                 settings={"sasl.password": "hush-hush", "sasl.username": "me"})
        .event_time("at", watermark=ps.bounded("1 second")).key_by("team").window(ps.tumbling("10 seconds"))
        .aggregate(n=ps.rows())
    )  # fmt: skip
    made = ps.pipeline("secretive", totals.write(ps.postgres("postgresql://me:hush-hush@localhost/games", table="t")))
    keep_plan(run.store, made, 7)
    server = Dashboard(str(run.root)).start()
    try:
        served = b"".join(ask(server, path)[2] for path in ("/plan.json", "/metrics", "/why.json?key=red"))
        told = news(server, lambda read: b"event: batches" in read)
    finally:
        server.stop()
    assert b"secretive" in served
    assert b"hush-hush" not in served
    assert "hush-hush" not in json.dumps(told)
    assert server.token not in json.dumps(told)


def test_a_listener_hears_how_it_stands_and_every_batch_once(server, run):
    told = news(server, lambda read: b'{"batch":39,"now"' in read.partition(b"event: batches")[2])
    assert {kind for kind, _, _ in told} >= {"begun", "standing", "batches"}
    standing = next(data for kind, data, _ in told if kind == "standing")
    assert (standing["name"], standing["state"], standing["batch"]) == ("team-scores", "running", 39)
    batches = [one["batch"] for kind, data, _ in told if kind == "batches" for one in data]
    assert batches == list(range(40))


def test_a_listener_that_comes_back_hears_only_what_is_new(tmp_path):
    made = Run(tmp_path).batches(5)
    server = Dashboard(str(tmp_path)).start()
    try:
        told = news(server, lambda read: b"id: " in read)
        last = next(number for kind, _, number in told if kind == "batches")
        made.batch()
        again = news(server, lambda read: b"event: batches" in read, Last_Event_ID=last)
        assert [one["batch"] for kind, data, _ in again if kind == "batches" for one in data] == [5]
        assert "begun" not in {kind for kind, _, _ in again}
        another = news(server, lambda read: b"event: batches" in read, Last_Event_ID="00000000-3")
        assert [one["batch"] for kind, data, _ in another if kind == "batches" for one in data][:3] == [0, 1, 2]
    finally:
        server.stop()


def test_pages_hear_how_a_run_has_ended_before_the_server_does(tmp_path):
    made = Run(tmp_path).batches(3)
    server = Dashboard(str(tmp_path)).start()
    told = []
    heard = threading.Thread(target=lambda: told.extend(news(server, lambda read: b'"state":"stopped"' in read)))
    heard.start()
    deadline = time.monotonic() + 10
    while not server.listening and time.monotonic() < deadline:
        time.sleep(0.02)
    made.lease.release()
    server.stop()
    heard.join(10)
    assert [data["state"] for kind, data, _ in told if kind == "standing"][-1] == "stopped"


def test_it_ends_at_once_though_pages_listen(run):
    server = Dashboard(str(run.root)).start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as talk:
        host, key = f"127.0.0.1:{server.port}", f"{server.cookie}={server.token}"
        talk.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: {key}\r\n\r\n".encode())
        assert talk.recv(12).endswith(b"200")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 5
    assert not any(thread.name == "penstock-ui" and thread.is_alive() for thread in threading.enumerate()
                   if thread in server.threads)  # fmt: skip
