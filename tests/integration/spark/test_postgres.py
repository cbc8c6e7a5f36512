"""Rows 3 and 11 of the faults, on Spark: answers in PostgreSQL, whose server dies and whose replies are lost."""

import penstock as ps
from penstock.testing.servers.postgres import database
from penstock.testing.servers.proxy import proxy
from tests.integration.spark.driving import put, running, scores, totals


def test_3_and_11_a_run_goes_on_by_itself_and_every_pane_is_there_once(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 30))
    with database(fsync="off") as server, proxy(server.port) as way:
        sink = ps.postgres(server.url_of(port=way.port), table="totals", history=True)
        pipeline = ps.pipeline("steady", totals(scores(rows)).write(sink))
        with running(pipeline, tmp_path / "checkpoint") as run:
            run.until(lambda one: one.total_panes == 1)
            server.kill()
            put(rows, "b.json", ("blue", 5, 31), ("blue", 2, 60))
            waits = run.until(lambda one: one.waiting is not None)
            assert "does not answer" in waits.waiting
            server.start()
            run.until(lambda one: one.waiting is None and one.total_panes == 3)
            # The first commit that comes is a claim's, the second a batch's.
            way.lose_next_commit(passing=1)
            put(rows, "c.json", ("red", 7, 61), ("red", 1, 90))
            run.until(lambda one: one.total_panes == 5)
            run.handle.stop()
        assert way.lost == 1
        kept = server.ask("SELECT team, points FROM totals_history ORDER BY team, points")
        assert kept == [("blue", 2), ("blue", 5), ("red", 1), ("red", 2), ("red", 7)]
        assert server.ask("SELECT team, points FROM totals ORDER BY team, points") == kept
