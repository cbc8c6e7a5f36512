"""Points of each team in every ten seconds, from Kafka to PostgreSQL, each answer exactly once."""

import os

import penstock as ps

plays = ps.kafka(
    "plays",
    servers=os.environ.get("KAFKA", "localhost:9092"),
    schema="user string, team string, points long, at timestamp",
    group="team-scores",                                                        # kafka-consumer-groups shows the lag
)  # fmt: skip
totals = (
    plays.event_time("at", watermark=ps.bounded("3 seconds", idle="5 seconds"))
    .key_by("team")
    .window(ps.tumbling("10 seconds"), lateness="1 minute")
    .trigger(ps.at_watermark(early=ps.every("1 second"), late=ps.count(1)))
    .accumulating()
    .aggregate(points=ps.sum("points"), plays=ps.rows())
)
database = os.environ.get("POSTGRES", "postgresql://postgres@localhost/postgres")
team_scores = ps.pipeline(
    "team-scores",
    totals.write(ps.postgres(database, table="team_scores", history=True)),
    totals.quarantine.write(ps.postgres(database, table="bad_plays")),
)

if __name__ == "__main__":
    print(team_scores.run(checkpoint="checkpoints/kafka-team-scores", batch_every="500 milliseconds"))
