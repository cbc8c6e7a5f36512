"""What `penstock init` writes: a pipeline with a comment to each of its decisions."""

from __future__ import annotations

STARTER = '''"""Points of each team in every ten seconds of a game, kept in a SQLite file.

    penstock check @file@.py      # can the plan be right?
    penstock explain @file@.py    # what does it do?
    penstock run @file@.py        # Ctrl-C stops it after the batch; run it again and it goes on
"""

import penstock as ps

# The source: scores of a mobile game, made up as they come. One in a hundred is a straggler that comes a minute or so
# after it happened. Put your own here: ps.directory("scores/", ...), ps.kafka("scores", ...), or ps.stream(df) for any
# DataFrame of Spark's.
scores = ps.game_scores(rate=1_000, disorder="2 seconds", faults=ps.Faults(stragglers=0.01, straggler_delay="1 minute"))

totals = (
    # Event time: when it happened, not when it came. The watermark is how far event time is thought to be complete:
    # the newest event less five seconds; a partition that is silent for ten is not waited for.
    scores.event_time("at", watermark=ps.bounded("5 seconds", idle="10 seconds"))
    .key_by("team")
    # Where: windows of ten seconds. A complete one takes corrections for another half a minute; what comes later
    # still is not lost, but goes to the late rows below.
    .window(ps.tumbling("10 seconds"), lateness="30 seconds")
    # When: a first guess every two seconds, the answer when the watermark passes, a correction for each late row.
    .trigger(ps.at_watermark(early=ps.every("2 seconds"), late=ps.count(1)))
    # How: every pane is the whole answer so far, so the last one replaces those before it.
    .accumulating()
    # What:
    .aggregate(points=ps.sum("points"), plays=ps.rows())
)

@table@ = ps.pipeline(
    "@name@",
    totals.write(ps.sqlite("@file@.db", table="@table@")),
    totals.late.write(ps.files("@file@_late", format="json")),
)

# Look at the answers while it runs:
#   sqlite3 @file@.db "SELECT window_start, team, points, pane_timing FROM @table@ ORDER BY 1 DESC, 2 LIMIT 16"
'''
