"""The pipelines whose checkpoints are kept: they never change, for what older versions wrote of them does not.

Between them they have every kind of window, trigger, aggregate, stage, source and sink. A batch is always as many rows,
so that a run that goes on is cut as one that was never stopped.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import penstock as ps
from penstock.quarantine.replay import Repaired

Made = Callable[[Path], ps.Pipeline]
SHARDS = 2
START = "2026-05-01T12:00:00"
CITIES = [{"team": "amber", "city": "Riga"}, {"team": "azure", "city": "Nice"}, {"team": "ebony", "city": "Lagos"}]
COLUMNS = "team string, points long, share double, at timestamp"
FORMATS = ("json", "csv", "parquet")
MTIME = 1_780_000_000  # seconds, of the first file of a directory; those that follow are a second younger each


@dataclass(frozen=True)
class Case:
    """A pipeline made for a folder, what lies there before it first runs, and what comes after it was stopped.

    It is stopped after so many batches, or when it has read all there is. What is repaired is put into the checkpoint
    then, and not read yet. It goes on until the last of `until`.
    """

    made: Made
    prepare: Callable[[Path], None] = lambda folder: None
    more: Callable[[Path], None] = lambda folder: None
    stop_after: int | None = 3
    repaired: tuple[Repaired, ...] = ()
    until: tuple[str, ...] = ("end",)


# windows, triggers, aggregates


class Longest:
    """A fold: the longest run of points that are not below one another, as far as a text can tell."""

    def zero(self) -> Any:
        return [0, 0]

    def add(self, accumulator: Any, value: Any) -> Any:
        return [accumulator[0] + 1, max(accumulator[1], value)]

    def combine(self, left: Any, right: Any) -> Any:
        return [left[0] + right[0], max(left[1], right[1])]

    def result(self, accumulator: Any) -> Any:
        return accumulator[0] * 1_000 + accumulator[1]


def in_two(t: int) -> list[tuple[int, int]]:
    """A window of two seconds and one of three, for each instant."""
    base = t // 2_000_000 * 2_000_000
    return [(base, base + 2_000_000), (base, base + 3_000_000)]


def near(t: int) -> list[tuple[int, int]]:
    """Half a second from each instant."""
    return [(t, t + 500_000)]


def as_one(windows: list[ps.Window]) -> dict[ps.Window, ps.Window]:
    """Windows that overlap become one."""
    goes: dict[ps.Window, ps.Window] = {}
    group: list[ps.Window] = []
    for window in [*sorted(windows), None]:
        if window is not None and (not group or window.start < max(one.end for one in group)):
            group.append(window)
            continue
        if group:
            goes.update(dict.fromkeys(group, ps.Window(group[0].start, max(one.end for one in group))))
        group = [window] if window is not None else []
    return goes


def scores(events: int, rate: int = 100, keys: int = 12, **how: Any) -> ps.Stream:
    """Scores with disorder, stragglers and bad rows, the same each time."""
    made = ps.game_scores(rate=rate, keys=keys, teams=3, partitions=2, disorder="300 ms", events=events,
                          realtime=False, start=START, faults=ps.Faults(stragglers=0.02, bad=0.01), **how)  # fmt: skip
    return made.event_time("at", watermark=ps.bounded("500 ms", idle=None))


def windows(folder: Path) -> ps.Pipeline:
    """Windows of each kind under triggers of each kind, with aggregates of each kind, in each mode."""
    given = scores(800)
    by_user, by_team = given.key_by("user"), given.key_by("team")
    early = ps.at_watermark(early=ps.count(3), late=ps.count(1))
    n, points = ps.rows(), ps.sum("points")
    results = {
        "tumbling": by_team.window(ps.tumbling("2 seconds")).aggregate(
            n=n, points=points, least=ps.min("points"), most=ps.max("points"), mean=ps.mean("points"),
            users=ps.distinct("user"), given=ps.count("user", where="points > 5")),
        "lists": by_team.window(ps.tumbling("3 seconds", offset="1 s"), lateness="1 s").accumulating().aggregate(
            first=ps.first("user"), last=ps.last("points"), who=ps.arg_max("user", "points"),
            whom=ps.arg_min("user", "points"), best=ps.top_k("points", 3), named=ps.top_k("user", 2, by="points"),
            all=ps.collect("points", 5), spread=ps.variance("points")),
        "sketches": by_team.window(ps.tumbling("5 seconds")).aggregate(
            users=ps.approx_distinct("user"), median=ps.approx_quantile("points", 0.5),
            longest=ps.fold("points", Longest(), type="long")),
        "sliding": by_user.window(ps.sliding("2 seconds", every="1 second"), lateness="2 seconds").trigger(early)
            .accumulating().aggregate(n=n, points=points),
        "session": by_user.window(ps.session("400 ms"), lateness="1 second").trigger(early).retracting().aggregate(
            n=n, points=points, most=ps.max("points")),
        "partial": by_user.window(ps.session("300 ms")).trigger(ps.at_watermark(early=ps.count(2))).discarding()
            .aggregate(n=n, points=points),
        "pairs": by_user.window(ps.event_pairs("200 ms")).aggregate(n=n),
        "calendar": by_team.window(ps.calendar("day", zone="Europe/Berlin")).trigger(
            ps.at_watermark(early=ps.every("1 second", offset="200 ms"))).accumulating().aggregate(n=n, points=points),
        "global": by_team.window(ps.global_window()).trigger(
            ps.repeat(ps.after("500 ms").then(ps.count(7)) | ps.when("points > 300", once=True))).accumulating()
            .aggregate(n=n, points=points),
        "custom": by_team.window(ps.custom(in_two)).trigger(
            ps.at_watermark(early=(ps.count(5) & ps.after("100 ms")).until(ps.count(40)))).accumulating().aggregate(
                n=n),
        "merged": by_user.window(ps.custom(near, as_one), lateness="1 second").trigger(
            ps.at_watermark(early=ps.repeat(ps.count(4)), late=ps.never())).retracting().aggregate(n=n, points=points),
        "expiry": by_team.window(ps.tumbling("1 second"), lateness="2 seconds").trigger(ps.at_expiry()).aggregate(n=n),
    }  # fmt: skip
    database = folder / "answers.db"
    outputs = [one.write(ps.sqlite(database, table=name, history=True)) for name, one in results.items()]
    return ps.pipeline("golden_windows", *outputs, shards=1, batch_rows=200)


# stages other than windows, and stages after stages


class Streaks(ps.KeyedFunction):
    """Three scores of a user in a row that are not below one another; a second of silence ends a streak."""

    output = "user string, points long, until timestamp"
    sides: ClassVar = {"ended": "user string"}
    last = ps.value("long", default=0, ttl="1 minute")
    length = ps.value("long", default=0, ttl="1 minute", ttl_by="processing")
    recent = ps.items("timestamp")
    teams = ps.mapping("string", "long")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.length = self.length + 1 if event["points"] >= self.last else 1
        self.last = event["points"]
        self.recent.append(context.time)
        self.teams[event["team"]] = self.teams.get(event["team"], 0) + 1
        if self.length == 3:
            until = context.time + timedelta(milliseconds=100 * event["points"])
            context.emit(user=key, points=event["points"], until=until)
            self.length = 0
        context.cancel(name="idle")
        context.timer("1 second", "idle")

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit_to("ended", user=key)
        self.length = 0


class Records(ps.KeyedFunction):
    """Scores that are as good as the record of their team, by rules that every key sees."""

    output = "user string, team string, points long"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        rule = context.rules.get(event["team"])
        if rule is not None and event["points"] >= rule["points"]:
            context.emit(user=key, team=event["team"], points=event["points"])


class Greeted(ps.KeyedFunction):
    """Each user once, by the processing clock: a millisecond after the batch that has the first score."""

    output = "user string"
    seen = ps.value("boolean", default=False)

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        if not self.seen:
            self.seen = True
            context.timer("1 millisecond", "greet", kind="processing")

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(user=key)


async def ranked(row: dict[str, Any]) -> dict[str, Any]:
    """What a service outside says of a user; of some it knows nothing."""
    if row["user"].endswith("3"):
        raise LookupError(f"nobody knows {row['user']}")
    return {"rank": len(row["user"]), "league": row["user"][-1]}


def joins(folder: Path) -> ps.Pipeline:
    """Joins of each kind, of streams and of tables."""
    given = scores(600, keys=30)
    parts = given.split(high="points > 16", low="points < 4")
    some = given.where("points > 8").select("user", "points", "at")
    met = given.where("user like '%1'").select("team", rival="user", met="at")
    same, low = {"user": "rival"}, parts["low"].select(rival="user", lost="points")
    rated = some.temporal_join(met.select("rival", was="met"), on=same)
    cities = ps.table(CITIES, schema="team string, city string", name="cities")
    teams = ps.table(folder / "teams.csv", schema="team string, name string", reload="1 hour")
    results = {
        "between": some.join(low, on=same, between=("0", "1 second"), how="left"),
        "together": some.join(low, on=same, how="full", window=ps.tumbling("200 ms")),
        "starred": some.join(low, on=same, between=("-1 second", "0"), how="semi"),
        "unstarred": some.join(low, on=same, between=("-1 second", "0"), how="anti"),
        "ever": some.join(parts["high"].select("team", rival="user"), on=same, keep="forever"),
        "rated": rated,
        "unmatched": rated.output("unmatched"),
        "known": some.join_table(met.select("rival", "team"), on=same, how="left"),
        "everywhere": some.join_table(met.select("rival", "team"), on=same, how="left", broadcast=True),
        "homes": parts["rest"].join_table(cities, on="team", how="left").join_table(teams, on="team", how="left"),
    }
    database = folder / "answers.db"
    outputs = [one.write(ps.sqlite(database, table=name)) for name, one in results.items()]
    return ps.pipeline("golden_joins", *outputs, shards=SHARDS, batch_rows=150)


def put_teams(folder: Path) -> None:
    """The table that is read whole."""
    file = folder / "teams.csv"
    file.write_text("team,name\namber,Ants\nazure,Apes\n")
    os.utime(file, (MTIME, MTIME))


def stages(folder: Path) -> ps.Pipeline:
    """Stages of the other kinds, and stages after stages whose rows are retracted."""
    given = scores(600, keys=30)
    parts = given.split(high="points > 16", low="points < 4")
    once = given.dedup("user", "points", within="2 seconds")
    streaks = given.key_by("user").process(Streaks(), ordered=True)
    drop = ps.pattern("high", "points > 16").then("low", "points < 4").within("3 seconds")
    drops = given.key_by("user").match(drop, output={"high": "high.points", "low": "low.points"},
                                       skip=ps.past_last(), timeouts=True)  # fmt: skip
    sums = once.key_by("team").window(ps.tumbling("2 seconds")).aggregate(points=ps.sum("points"), n=ps.rows())
    early = given.key_by("user").window(ps.tumbling("4 seconds")).trigger(ps.at_watermark(early=ps.count(1)))
    plays = early.retracting().aggregate(n=ps.rows(), points=ps.sum("points"))
    results = {
        "plain": parts["rest"].where("points < 8").select("user", "team", twice="points * 2"),
        "once": once,
        "duplicates": once.output("duplicates"),
        "latest": given.dedup("user", within="100 milliseconds", keep="last"),
        "streaks": streaks,
        "ended": streaks.output("ended"),
        "greeted": given.key_by("user").process(Greeted()),
        "records": given.key_by("user").process(Records(), rules=parts["high"].select("team", "points"),
                                                rule_key="team"),
        "drops": drops,
        "timeouts": drops.output("timeouts"),
        "ranked": streaks.enrich(ranked, on="user", output="rank long, league string", retries=0, cache="1 hour",
                                 cache_rows=20, on_error="null"),
        "sums": sums,
        "best": sums.stream.key_by("team").window(ps.tumbling("4 seconds")).aggregate(best=ps.max("points")),
        "spread": plays.stream.key_by("n").window(ps.tumbling("8 seconds")).aggregate(
            users=ps.rows(), points=ps.sum("points"), best=ps.max("points"), all=ps.collect("points", 5)),
        "newest": given.key_by("team").top(3, by="at"),
        "leading": given.key_by("team").top(3, by="points", window=ps.tumbling("2 seconds")),
    }  # fmt: skip
    database = folder / "answers.db"
    outputs = [one.write(ps.sqlite(database, table=name)) for name, one in results.items()]
    return ps.pipeline("golden_stages", *outputs, shards=1, batch_rows=150)


# sources and sinks


@dataclass(frozen=True)
class Append:
    """The user's own function: a line for each batch."""

    file: str

    def __call__(self, rows: Any, batch: Any) -> None:
        with open(self.file, "a") as lines:
            lines.write(f"{batch.batch} {rows.count()} {batch.token}\n")


def files(folder: Path) -> ps.Pipeline:
    """Directories of JSON, CSV and Parquet, by other rules of the watermark, to every sink that needs no server."""

    def read(format: str, **how: Any) -> ps.Stream:
        return ps.directory(folder / "in" / format, schema=COLUMNS, format=format, name=format, end=True, **how)

    rules = {
        "json": ps.percentile(0.8, floor="1 second", ceiling="1 minute", idle=None),
        "parquet": ps.ascending(idle=None),
    }
    timed = [read(format).event_time("at", watermark=rule) for format, rule in rules.items()]
    timed.append(read("csv", partition="directory").event_time("at", watermark=ps.bounded("1 second", idle=None)))
    given = timed[0].union(*timed[1:])
    early = ps.at_watermark(early=ps.count(3), late=ps.count(1))
    fired = given.key_by("team").window(ps.tumbling("20 seconds"), lateness="1 second").trigger(early)
    sums = fired.accumulating().aggregate(points=ps.sum("points"), share=ps.sum("share"), n=ps.rows())
    return ps.pipeline(
        "golden_files",
        sums.write(ps.sqlite(folder / "a.db", table="totals", history=True)),
        sums.write(ps.duckdb(folder / "a.duckdb", table="totals", history=True)),
        sums.write(ps.files(folder / "parquet")),
        sums.write(ps.files(folder / "json", format="json")),
        sums.write(ps.memory("golden_files", takeover=True)),
        sums.write(ps.console(rows=1)),
        sums.write(ps.foreach_batch(Append(str(folder / "batches.txt")))),
        sums.late.write(ps.files(folder / "late", format="json")),
        sums.quarantine.write(ps.files(folder / "quarantine", format="json")),
        sums.archive.write(ps.files(folder / "archive")),
        shards=SHARDS, batch_rows=1,
    )  # fmt: skip


def put_files(
    folder: Path, numbers: Sequence[int] = range(5), formats: Sequence[str] = ("json", "csv", "parquet")
) -> None:
    """Files of each format, one for each batch; in the JSON some lines are none, and some rows come late."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    begun = datetime.fromisoformat(f"{START}+00:00")
    for number in numbers:
        seconds = [20 * number + i if i < 5 else max(0, 20 * number - 75) for i in range(6)]
        rows = [{"team": team, "points": 10 * number + i, "share": 0.1 * i,
                 "at": (begun + timedelta(seconds=seconds[i])).isoformat()}
                for i, team in enumerate(["amber", "azure", "ebony"] * 2)]  # fmt: skip
        for format in formats:
            file = folder / "in" / format / f"{'ab'[number % 2]}/" / f"{number}.{format}"
            file.parent.mkdir(parents=True, exist_ok=True)
            if format == "json":
                lines = [json.dumps(row) for row in rows] + (["{broken"] if number in (1, 4) else [])
                file.write_text("\n".join(lines) + "\n")
            elif format == "csv":
                with open(file, "w", newline="") as out:
                    writer = csv.DictWriter(out, list(rows[0]))
                    writer.writeheader()
                    writer.writerows(rows)
            else:
                timed = [{**row, "at": datetime.fromisoformat(str(row["at"]))} for row in rows]
                types = [pa.string(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC")]
                pq.write_table(pa.Table.from_pylist(timed, pa.schema(list(zip(rows[0], types, strict=True)))), file)
            os.utime(file, (MTIME + number, MTIME + number))


def frame(folder: Path) -> ps.Pipeline:
    """A streaming DataFrame of Spark's own file source, a file in each batch."""
    from penstock.spark.session import session

    rows = session().readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "in" / "json" / "*"))
    given = ps.stream(rows, name="rows").event_time("at", watermark=ps.bounded("5 seconds", idle=None))
    sums = given.key_by("team").window(ps.tumbling("20 seconds"), lateness="2 minutes").accumulating().aggregate(
        points=ps.sum("points"), n=ps.rows())  # fmt: skip
    return ps.pipeline("golden_frame", sums.write(ps.sqlite(folder / "a.db", table="totals")), shards=1)


MENDED = {"team": "amber", "points": 1_000, "share": 0.5, "at": "2026-05-01T12:01:10+00:00"}
CASES: dict[str, Case] = {
    "windows": Case(windows),
    "joins": Case(joins, put_teams),
    "stages": Case(stages),
    "files": Case(files, put_files, repaired=(Repaired(("json", "0", 7), MENDED),)),
    "frame": Case(
        frame, partial(put_files, numbers=range(3), formats=["json"]),
        partial(put_files, numbers=range(3, 5), formats=["json"]), stop_after=None, until=("caught_up", "end"),
    ),
}  # fmt: skip
