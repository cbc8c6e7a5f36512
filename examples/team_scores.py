"""Points of each team in every ten seconds: shown early, when complete, and again when a late score corrects them."""

import penstock as ps

scores = ps.game_scores(rate=1_000, faults=ps.Faults(stragglers=0.01))
totals = (
    scores.event_time("at", watermark=ps.bounded("5 seconds"))                  # when it happened
    .key_by("team")
    .window(ps.tumbling("10 seconds"), lateness="30 seconds")                   # where in event time
    .trigger(ps.at_watermark(early=ps.every("2 seconds"), late=ps.count(1)))    # when it is shown
    .accumulating()                                                             # how panes relate
    .aggregate(points=ps.sum("points"), plays=ps.rows())                        # what is computed
)  # fmt: skip
team_scores = ps.pipeline(
    "team-scores",
    totals.write(ps.sqlite("scores.db", table="team_scores")),
    totals.late.write(ps.files("late_scores", format="json")),
)

if __name__ == "__main__":
    print(team_scores.run(checkpoint="checkpoints/team-scores"))
