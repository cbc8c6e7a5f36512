"""Nexmark's queries by PyFlink, where it installs: their SQL on a cluster of its own with two slots, in one process.

A process of another Python, because PyFlink wants another pyarrow than ours: `measured` makes one, once, and starts
this file in it. Flink reads the same files and drops the rows where they are made, with a checkpoint each second.
Seconds are those of the whole job as Flink has them, its start among them, the last of some rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "2.3.0"
ROUNDS = 2
TEN = "INTERVAL '10' SECOND"
DAY = "DATE_FORMAT(ts, 'yyyy-MM-dd')"
RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
EVENTS = """
CREATE TABLE events (
    event_type BIGINT, date_time TIMESTAMP(6), id BIGINT, name STRING, email_address STRING, credit_card STRING,
    city STRING, state STRING, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
    expires TIMESTAMP(6), seller BIGINT, category BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING,
    url STRING, extra STRING, ts AS CAST(date_time AS TIMESTAMP(3)), now AS PROCTIME(),
    WATERMARK FOR ts AS ts - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file://{where}', 'format' = 'parquet')
"""
VIEWS = {
    "person": "SELECT id, name, email_address, credit_card, city, state, ts, extra FROM events WHERE event_type = 0",
    "auction": "SELECT id, item_name, description, initial_bid, reserve, ts, CAST(expires AS TIMESTAMP(3)) AS expires, "
    "seller, category, extra FROM events WHERE event_type = 1",
    "bid": "SELECT auction, bidder, price, channel, url, ts, now, extra FROM events WHERE event_type = 2",
}
_HOT = (f"SELECT auction, COUNT(*) AS num, window_start, window_end FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), "
        f"INTERVAL '2' SECOND, {TEN})) GROUP BY auction, window_start, window_end")  # fmt: skip
_OPEN = "auction A JOIN bid B ON A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires"
_KINDS = ", ".join(f"COUNT(*) FILTER (WHERE {rank})" for rank in RANKS)
_SEEN = ", ".join(
    f"COUNT(DISTINCT {who}){where}" for who in ("bidder", "auction")
    for where in ("", *(f" FILTER (WHERE {rank})" for rank in RANKS))
)  # fmt: skip
QUERIES = {
    "q0": "SELECT auction, bidder, price, ts, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, ts, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": "SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id "
    "WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')",
    "q4": f"SELECT category, AVG(final) AS mean FROM (SELECT A.id, A.category, MAX(B.price) AS final FROM {_OPEN} "
    "GROUP BY A.id, A.category) GROUP BY category",
    "q5": f"SELECT C.auction, C.num FROM ({_HOT}) C JOIN (SELECT MAX(num) AS maxn, window_start, window_end FROM "
    f"({_HOT}) GROUP BY window_start, window_end) M ON C.window_start = M.window_start AND "
    "C.window_end = M.window_end AND C.num >= M.maxn",
    "q7": "SELECT B.auction, B.price, B.bidder, B.ts, B.extra FROM bid B JOIN (SELECT MAX(price) AS maxprice, "
    f"window_end FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), {TEN})) GROUP BY window_start, window_end) M "
    f"ON B.price = M.maxprice AND B.ts BETWEEN M.window_end - {TEN} AND M.window_end",
    "q8": "SELECT P.id, P.name, P.window_start FROM (SELECT id, name, window_start, window_end FROM "
    f"TABLE(TUMBLE(TABLE person, DESCRIPTOR(ts), {TEN})) GROUP BY id, name, window_start, window_end) P "
    f"JOIN (SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ts), {TEN})) "
    "GROUP BY seller, window_start, window_end) A ON P.id = A.seller AND P.window_start = A.window_start "
    "AND P.window_end = A.window_end",
    "q9": "SELECT * FROM (SELECT A.*, B.bidder, B.price, B.ts AS bid_at, B.extra AS bid_extra, ROW_NUMBER() OVER "
    f"(PARTITION BY A.id ORDER BY B.price DESC, B.ts ASC) AS place FROM {_OPEN}) WHERE place <= 1",
    "q11": "SELECT bidder, COUNT(*) AS n, window_start, window_end FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, "
    f"DESCRIPTOR(ts), {TEN})) GROUP BY bidder, window_start, window_end",
    "q12": f"SELECT bidder, COUNT(*) AS n, window_start, window_end FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(now), "
    f"{TEN})) GROUP BY bidder, window_start, window_end",
    "q14": "SELECT auction, bidder, 0.908 * price AS price, CASE WHEN HOUR(ts) BETWEEN 8 AND 18 THEN 'dayTime' WHEN "
    "HOUR(ts) <= 6 OR HOUR(ts) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS kind, ts, extra, CHAR_LENGTH(extra) - "
    "CHAR_LENGTH(REPLACE(extra, 'c', '')) AS letters FROM bid WHERE 0.908 * price > 1000000 AND "
    "0.908 * price < 50000000",
    "q15": f"SELECT {DAY} AS d, COUNT(*), {_KINDS}, {_SEEN} FROM bid GROUP BY {DAY}",
    "q16": f"SELECT channel, {DAY} AS d, MAX(DATE_FORMAT(ts, 'HH:mm')), COUNT(*), {_KINDS}, {_SEEN} FROM bid "
    f"GROUP BY channel, {DAY}",
    "q17": f"SELECT auction, {DAY} AS d, COUNT(*), {_KINDS}, MIN(price), MAX(price), AVG(price), SUM(price) FROM bid "
    f"GROUP BY auction, {DAY}",
    "q18": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS place "
    "FROM (SELECT auction, bidder, price, channel, url, ts, extra FROM bid)) WHERE place <= 1",
    "q19": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place "
    "FROM (SELECT auction, bidder, price, channel, url, ts, extra FROM bid)) WHERE place <= 10",
    "q20": "SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.ts, B.extra, A.item_name, A.description, "
    "A.initial_bid, A.reserve, A.ts AS opened, A.expires, A.seller, A.category, A.extra AS more FROM bid B JOIN "
    "auction A ON B.auction = A.id WHERE A.category = 10",
    "q21": "SELECT auction, bidder, price, channel, CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
    "WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS c "
    "FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL OR "
    "LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    "q22": "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS a, SPLIT_INDEX(url, '/', 4) AS b, "
    "SPLIT_INDEX(url, '/', 5) AS c FROM bid",
    "q23": "SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.ts, B.extra, P.name, P.email_address, "
    "P.credit_card, P.city, P.state, P.extra AS pe, A.item_name, A.description, A.reserve, A.category, "
    "A.extra AS ae FROM bid B JOIN person P ON B.bidder = P.id JOIN auction A ON B.bidder = A.seller",
}  # fmt: skip


def measured(asked: Mapping[str, Path]) -> dict[str, float | str]:
    """Seconds of each query over the files in a folder, or why there are none; those it does not know are left out."""
    from penstock.errors import PenstockError

    known = {name: str(where) for name, where in asked.items() if name in QUERIES}
    try:
        python, jars = _installed()
    except (OSError, PenstockError, subprocess.CalledProcessError) as error:
        return dict.fromkeys(known, f"PyFlink does not install: {error}")
    with tempfile.TemporaryDirectory(prefix="penstock-flink-") as scratch:
        told = json.dumps({"queries": known, "jars": jars, "scratch": scratch})
        found: dict[str, float | str] = {}
        quiet = subprocess.DEVNULL  # of what Flink's log says by the way
        with subprocess.Popen([python, __file__, told], stdout=subprocess.PIPE, stderr=quiet, text=True) as running:
            for line in running.stdout or ():
                if line.startswith('{"query"'):
                    said = json.loads(line)
                    found[said["query"]] = said["seconds"]
                    print(f"  {said['query']}: PyFlink: {said['seconds']} s in all", flush=True)
    return {name: found.get(name, f"PyFlink ended with {running.returncode}") for name in known}


def _installed() -> tuple[str, list[str]]:
    """A Python with PyFlink, and the packages by which it reads Parquet."""
    import pyspark

    from penstock.testing.servers.maven import jars

    home = Path(os.environ.get("PENSTOCK_FLINK") or Path.home() / f".cache/penstock/flink-{VERSION}")
    python = home / "bin/python"
    if not (home / "complete").exists():
        print(f"installing PyFlink {VERSION} into {home}", flush=True)
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"apache-flink=={VERSION}"], check=True)
        (home / "complete").touch()
    parquet = jars(f"flink-parquet-{VERSION}", f"org.apache.flink:flink-sql-parquet:{VERSION}", alone=True)
    hadoop = Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar")
    return str(python), [str(path) for path in (*parquet.glob("*.jar"), *hadoop)]


def main() -> int:
    """In Flink's Python: what is asked comes in, a line for each query goes out."""
    told = json.loads(sys.argv[1])
    for name, where in told["queries"].items():
        try:
            seconds: float | str = _seconds(name, Path(where), told["jars"], Path(told["scratch"]))
        except Exception as error:  # whatever Java says; the others are asked all the same
            seconds = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
        print(json.dumps({"query": name, "seconds": seconds}), flush=True)
    return 0


def _seconds(name: str, where: Path, jars: list[str], scratch: Path) -> float:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment: Any = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars), "parallelism.default": "2",
        "execution.checkpointing.interval": "1 s", "execution.checkpointing.dir": f"file://{scratch}/checkpoints",
    }.items():  # fmt: skip
        environment.get_config().set(key, value)
    environment.execute_sql(EVENTS.format(where=_from_the_last(where, scratch)))
    for view, query in VIEWS.items():
        environment.execute_sql(f"CREATE VIEW {view} AS {query}")
    millis = 0
    for turn in range(ROUNDS):
        done = environment.execute_sql(f"CREATE TABLE out{turn} WITH ('connector' = 'blackhole') AS {QUERIES[name]}")
        done.wait()
        millis = done.get_job_client().get_job_execution_result().result().get_net_runtime()
    return float(millis) / 1000


def _from_the_last(where: Path, scratch: Path) -> Path:
    """The files under names that go down: Flink begins with the last, and what is read out of order would be late."""
    folder = scratch / where.parent.name / where.name
    if not folder.exists():
        folder.mkdir(parents=True)
        files = sorted(where.glob("*.parquet"))
        for place, file in enumerate(files):
            (folder / f"part-{len(files) - place:05d}.parquet").symlink_to(file)
    return folder


if __name__ == "__main__":
    sys.exit(main())
