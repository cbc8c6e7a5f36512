"""One pipeline with a stage of every kind, over the scores of a game; run, killed and compared by tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import penstock as ps

START = "2026-05-01T12:00:00"


class Streaks(ps.KeyedFunction):
    """Three scores of a user in a row that are not below one another; two seconds of silence end a streak."""

    output = "user string, points long"
    sides: ClassVar = {"ended": "user string"}
    last = ps.value("long", default=0, ttl="1 minute")
    length = ps.value("long", default=0, ttl="1 minute")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.length = self.length + 1 if event["points"] >= self.last else 1
        self.last = event["points"]
        if self.length == 3:
            context.emit(user=key, points=event["points"])
            self.length = 0
        context.cancel(name="idle")
        context.timer("2 seconds", "idle")

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
    made = ps.game_scores(rate=1_000, keys=60, teams=4, partitions=2, events=events, realtime=False, start=START,
                          faults=ps.Faults(stragglers=0.01, bad=0.005))  # fmt: skip
    return made.event_time("at", watermark=ps.bounded("3 seconds", idle=None))


def stages(events: int) -> dict[str, ps.Rows | ps.Panes]:
    """What each kind of stage gives."""
    given = scores(events)
    once = given.dedup("user", "points", within="2 seconds")
    streaks = given.key_by("user").process(Streaks(), ordered=True)
    right = given.select("team", rival="user", met="at")
    drop = ps.pattern("high", "points > 8").then("low", "points < 3").within("3 seconds")
    sums = once.key_by("team").window(ps.tumbling("2 seconds")).aggregate(points=ps.sum("points"), n=ps.rows())
    early = given.key_by("user").window(ps.tumbling("4 seconds")).trigger(ps.at_watermark(early=ps.count(1)))
    plays = early.retracting().aggregate(n=ps.rows(), points=ps.sum("points"))
    return {
        "once": once,
        "latest": given.dedup("user", within="100 milliseconds", keep="last"),
        "streaks": streaks,
        "greeted": given.key_by("user").process(Greeted()),
        "met": streaks.join(right.where("rival like 'user-1%'").select("rival", "met"), on={"user": "rival"},
                            between=("0", "1 second"), how="left"),
        "paired": streaks.join(right.select("rival", "met"), on={"user": "rival"}, how="full",
                               window=ps.tumbling("200 milliseconds")),
        "ever": streaks.output("ended").join(given.where("points > 9").select("team", rival="user"),
                                             on={"user": "rival"}, between=None, keep="forever"),
        "rated": streaks.temporal_join(right.select("rival", was="met"), on={"user": "rival"}, how="left"),
        "named": streaks.output("ended").join_table(right.select("rival", "team"), on={"user": "rival"}, how="left"),
        "known": streaks.join_table(right.select("rival", "team"), on={"user": "rival"}, how="left", broadcast=True),
        "records": given.key_by("user").process(Records(), rules=given.where("points > 8").select("team", "points"),
                                                rule_key="team"),
        "drops": given.key_by("user").match(drop, output={"high": "high.points", "low": "low.points"},
                                            skip=ps.past_last(), timeouts=True),
        "ranked": streaks.enrich(ranked, on="user", output="rank long, league string", retries=0, cache="1 hour",
                                 cache_rows=20, on_error="null"),
        "sums": sums,
        "best": sums.stream.key_by("team").window(ps.tumbling("10 seconds")).aggregate(best=ps.max("points")),
        "spread": plays.stream.key_by("n").window(ps.tumbling("8 seconds")).aggregate(
            users=ps.rows(), points=ps.sum("points"), best=ps.max("points")),
        "leaders": given.key_by("team").top(3, by="points"),
        "leading": given.key_by("team").top(3, by="points", window=ps.tumbling("2 seconds")),
    }  # fmt: skip


def pipeline(folder: str | Path, events: int = 6_000) -> ps.Pipeline:
    """All of it, each to a table of its own."""
    made = stages(events)
    database = str(Path(folder) / "answers.db")
    outputs = [one.write(ps.sqlite(database, table=name)) for name, one in made.items()]
    return ps.pipeline("remembering", *outputs, shards=2, batch_rows=1_000)
