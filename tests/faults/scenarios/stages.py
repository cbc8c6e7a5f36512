"""The pipeline that is killed while it remembers: a stage of every kind over game scores, all in one SQLite file.

`python -m tests.faults.scenarios.stages FOLDER` runs it there, from wherever it was killed, until all is written. A
batch is always as many rows, so that what each stage gives in it is the same in every run, and in the reference.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.testing.crash.life import run_out
from penstock.testing.crash.redirect import with_history

NAME = "stages"
START = "2026-05-01T12:00:00"
RATE = 500
BATCH_ROWS = 1_000  # the least that a batch takes, however slow the machine
EVENTS = 6 * BATCH_ROWS
SHARDS = 2
SHOWS = 2  # the first batch in which the outputs that are killed are given something
KILLED = ("once", "duplicates", "streaks", "unmatched", "drops", "newest", "sums")  # of all tables those of each kind
CITIES = [{"team": "amber", "city": "Riga"}, {"team": "azure", "city": "Nice"}, {"team": "ebony", "city": "Lagos"}]


class Streaks(ps.KeyedFunction):
    """Three scores of a user in a row that are not below one another; a second of silence ends a streak."""

    output = "user string, points long, until timestamp"
    sides: ClassVar = {"ended": "user string"}
    last = ps.value("long", default=0, ttl="1 minute")
    length = ps.value("long", default=0, ttl="1 minute")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.length = self.length + 1 if event["points"] >= self.last else 1
        self.last = event["points"]
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


def scores(events: int) -> ps.Stream:
    """Scores with disorder, stragglers and bad rows, the same each time."""
    made = ps.game_scores(rate=RATE, keys=120, teams=4, partitions=2, disorder="300 ms", events=events,
                          realtime=False, start=START, faults=ps.Faults(stragglers=0.01, bad=0.005))  # fmt: skip
    return made.event_time("at", watermark=ps.bounded("1 second", idle=None))


def stages(events: int) -> dict[str, ps.Rows | ps.Panes]:
    """What each kind of stage gives, and what is given beside it."""
    given = scores(events)
    parts = given.split(high="points > 16", low="points < 4")
    once = given.dedup("user", "points", within="2 seconds")
    streaks = given.key_by("user").process(Streaks(), ordered=True)
    ended = streaks.output("ended")
    met = given.select("team", rival="user", met="at")
    same = {"user": "rival"}
    some = met.where("rival like 'user-001%'").select("rival", "met")
    rated = streaks.temporal_join(some.select("rival", was="met"), on=same)
    drop = ps.pattern("high", "points > 16").then("low", "points < 4").within("3 seconds")
    drops = given.key_by("user").match(drop, output={"high": "high.points", "low": "low.points"},
                                       skip=ps.past_last(), timeouts=True)  # fmt: skip
    sums = once.key_by("team").window(ps.tumbling("2 seconds")).aggregate(points=ps.sum("points"), n=ps.rows())
    early = given.key_by("user").window(ps.tumbling("4 seconds")).trigger(ps.at_watermark(early=ps.count(1)))
    plays = early.retracting().aggregate(n=ps.rows(), points=ps.sum("points"))
    return {
        "once": once,
        "duplicates": once.output("duplicates"),
        "latest": given.dedup("user", within="100 milliseconds", keep="last"),
        "streaks": streaks,
        "greeted": given.key_by("user").process(Greeted()),
        "met": streaks.join(some, on=same, between=("0", "until"), how="left"),
        "paired": streaks.join(met.select("rival", "met"), on=same, how="full", window=ps.tumbling("200 ms")),
        "starred": streaks.join(parts["high"].select(rival="user"), on=same, between=("-1 second", "0"), how="semi"),
        "unstarred": ended.join(parts["high"].select(rival="user"), on=same, between=("-3 s", "0"), how="anti"),
        "lows": streaks.select("user", was="points").join(parts["low"].select("points", rival="user"), on=same,
                                                          between=("0", "1 second"), how="right"),
        "ever": ended.join(given.where("points = 20").select("team", rival="user"), on=same, keep="forever"),
        "rated": rated,
        "unmatched": rated.output("unmatched"),
        "named": ended.join_table(met.select("rival", "team"), on=same, how="left"),
        "known": streaks.join_table(met.select("rival", "team"), on=same, how="left", broadcast=True),
        "homes": parts["rest"].join_table(ps.table(CITIES, schema="team string, city string"), on="team", how="left"),
        "records": given.key_by("user").process(Records(), rules=parts["high"].select("team", "points"),
                                                rule_key="team"),
        "drops": drops,
        "timeouts": drops.output("timeouts"),
        "ranked": streaks.enrich(ranked, on="user", output="rank long, league string", retries=0, cache="1 hour",
                                 cache_rows=20, on_error="null"),
        "sums": sums,
        "best": sums.stream.key_by("team").window(ps.tumbling("10 seconds")).aggregate(best=ps.max("points")),
        "spread": plays.stream.key_by("n").window(ps.tumbling("8 seconds")).aggregate(
            users=ps.rows(), points=ps.sum("points"), best=ps.max("points")),
        "newest": given.key_by("team").top(3, by="at"),
        "leading": given.key_by("team").top(3, by="points", window=ps.tumbling("2 seconds")),
    }  # fmt: skip


def made(folder: str | Path, events: int = EVENTS) -> Pipeline:
    """All of it, each to a table of its own; of answers every one beside those that stand."""
    database = str(Path(folder) / "answers.db")
    outputs = [with_history(one.write(ps.sqlite(database, table=name))) for name, one in stages(events).items()]
    return pipeline(NAME, *outputs, shards=SHARDS, batch_rows=BATCH_ROWS)


def killed() -> tuple[str, ...]:
    """The ids of the outputs between whose steps it is killed, too."""
    from penstock.coordinator.sink_targets import targets_of

    return tuple(name for name, sink, _ in targets_of(made(".")) if sink.table in KILLED)


def main(folder: str) -> None:
    """Run until all is written."""
    run_out(made(folder), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
