"""When is a run said to have used nothing: by the counts of its batches, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.clock import Clocks
from penstock.errors import TooManyBadRows
from penstock.runtime.batch import Counts

pytest.importorskip("pyspark")

from penstock.coordinator.batch_result import Heard, Part
from penstock.coordinator.unusable_input import Unusable
from penstock.engine.outputs import quarantine_table
from penstock.engine.shuffle.codec import packed
from penstock.plan.stages import ALL

TIMED = ps.events("team string, points long, at timestamp", name="scores").event_time("at", watermark=ps.ascending())
OTHER = ps.events("team string, at timestamp", name="teams").event_time("at", watermark=ps.ascending())
COUNTED = TIMED.key_by("team").window(ps.tumbling("1 hour")).aggregate(n=ps.rows())
JOINED = TIMED.join(OTHER, on="team", between=("0 seconds", "1 minute"), prefix="other_")


def run(*panes: Any, before: Clocks | None = None, name: str = "counted") -> Unusable:
    outputs = [one.write(ps.memory(f"{name} {number}")) for number, one in enumerate(panes or (COUNTED,))]
    return Unusable(ps.pipeline(name, *outputs), "checkpoints/counted", None, before or Clocks())


def heard(read: dict[str, int], bad: dict[str, list[str]], **counts: int) -> Heard:
    """A batch: how many rows each source gave, and the reasons of those that could not be used."""
    parts = []
    for source, reasons in bad.items():
        table = quarantine_table(source, "0", [(n, "decode", reason, "{}") for n, reason in enumerate(reasons)])
        parts.append(Part({"rows": table.num_rows}, bytes(packed({}, {"rows": table}))))
    found = Heard(streams={"quarantine": parts} if parts else {})
    refused = sum(map(len, bad.values()))
    found.counts = Counts(**{"read": sum(read.values()), "quarantined": refused, **counts})
    found.read = {source: [rows, len(bad.get(source, ()))] for source, rows in read.items()}
    return found


def refusal(of: Unusable) -> TooManyBadRows:
    found = of.refusal("ended after batch 0")
    assert found is not None
    return found


def test_a_run_that_could_use_nothing_says_how_many_rows_why_and_where_they_are() -> None:
    bad = [f"a{n}.json: column 'points': 'many {n}' is not an integer" for n in range(7)] + ["event time is null"] * 3
    one = run()
    one.batch(heard({"scores": 6}, {"scores": bad[:6]}))
    one.batch(heard({"scores": 4}, {"scores": bad[6:]}))
    error = refusal(one)
    assert error.what == "ended after batch 0, and could use nothing: all 10 rows of scores went to quarantine"
    assert "decode: a0.json: column 'points': 'many 0' is not an integer (7 rows)" in error.why
    assert "decode: event time is null (3 rows)" in error.why
    assert "kept under checkpoints/counted/penstock/quarantine" in error.why
    assert "penstock quarantine list checkpoints/counted" in error.instead
    assert 'max_bad="100%"' in error.instead


def test_where_the_quarantine_is_written_is_said() -> None:
    one = run(COUNTED)
    pipeline = ps.pipeline("counted", COUNTED.write(ps.memory("n")), COUNTED.quarantine.write(ps.files("bad/")))
    one = Unusable(pipeline, "checkpoints/counted", None, Clocks())
    one.batch(heard({"scores": 2}, {"scores": ["no", "no"]}))
    assert "written to " in refusal(one).why
    assert "bad/" in refusal(one).why


def test_one_row_that_is_of_use_is_enough() -> None:
    one = run()
    one.batch(heard({"scores": 9}, {"scores": ["no"] * 9}))
    one.batch(heard({"scores": 2}, {"scores": ["no"]}, kept=1))
    one.batch(heard({"scores": 500}, {"scores": ["no"] * 500}))
    assert one.refusal("ended") is None


def test_rows_that_were_filtered_or_late_were_of_use() -> None:
    for counts in ({"filtered": 1}, {"late": 1}, {"dropped": 1}):
        one = run()
        one.batch(heard({"scores": 3}, {"scores": ["no", "no"]}, **counts))
        assert one.refusal("ended") is None


def test_a_run_without_rows_is_fine() -> None:
    one = run()
    one.batch(heard({}, {}))
    one.batch(heard({"scores": 0}, {}))
    assert one.refusal("ended") is None


def test_all_of_one_source_of_two_is_said() -> None:
    one = run(JOINED)
    one.batch(heard({"scores": 3, "teams": 200}, {"teams": ["no"] * 200}, kept=3))
    assert "all 200 rows of teams went to quarantine" in refusal(one).what
    assert "scores" not in refusal(one).what


def test_rows_that_a_stage_in_order_takes_now_and_refuses_later_are_counted() -> None:
    class Failing(ps.KeyedFunction):
        output = "v long"

        def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
            raise ValueError

    one = run(TIMED.key_by("team").process(Failing(), ordered=True))
    one.batch(heard({"scores": 3}, {}, kept=3))
    one.batch(heard({}, {"scores": ["ValueError:"] * 3}, kept=-3))
    assert "all 3 rows of scores" in refusal(one).what


def test_a_source_that_two_stages_read_is_judged_by_what_both_did() -> None:
    """Half of the rows fail in both stages: as many are in quarantine as were read, and half were of use."""
    both = TIMED.dedup("team", within="1 hour"), COUNTED
    one = run(*both)
    one.batch(heard({"scores": 4}, {"scores": ["no"] * 4}, kept=4, given=4))
    assert one.refusal("ended") is None
    one = run(*both)
    one.batch(heard({"scores": 4}, {"scores": ["no"] * 8}, given=4))
    assert "all 4 rows of scores" in refusal(one).what


def test_rows_that_became_several_are_judged_together() -> None:
    one = run(JOINED)
    one.batch(heard({"scores": 2, "teams": 1}, {"scores": ["no"] * 5}, added=8, kept=6))
    assert one.refusal("ended") is None


@pytest.mark.parametrize(("rows", "before", "loud"), [
    (1, Counts(read=500, kept=490, quarantined=10), False),
    (99, Counts(read=500, kept=490, quarantined=10), False),
    (100, Counts(read=500, kept=490, quarantined=10), True),
    (1, Counts(read=5, quarantined=5), True),
])  # fmt: skip
def test_a_run_that_goes_on_with_a_few_rows_is_judged_with_those_before(rows: int, before: Counts, loud: bool) -> None:
    one = run(before=Clocks(3, totals=before, bad={"scores": [before.read, before.quarantined]}))
    one.batch(heard({"scores": rows}, {"scores": ["no"] * rows}))
    assert (one.refusal("caught up") is not None) is loud


def test_a_source_that_says_so_may_be_bad_altogether() -> None:
    one = Unusable(run().pipeline.bearing(ALL), "c", None, Clocks())
    one.batch(heard({"scores": 300}, {"scores": ["no"] * 300}))
    assert one.refusal("ended") is None
    assert not ALL.exceeded(600, 300)


def test_a_file_that_a_sink_has_taken_is_not_opened() -> None:
    one = run()
    found = heard({"scores": 3}, {}, quarantined=3)
    found.streams = {"quarantine": [Part({"rows": 3, "receipts": {"files": {}}}, b"")]}
    one.batch(found)
    assert "the quarantine has the reason of each" in refusal(one).why


def test_what_a_source_says_stays_where_only_the_others_are_to_bear_all() -> None:
    limited = ps.events("at timestamp", max_bad=3).event_time("at", watermark=ps.ascending())
    counted = limited.window(ps.tumbling("1 hour")).aggregate(n=ps.rows())
    pipeline = ps.pipeline("limited", counted.write(ps.memory("limited")))
    assert pipeline.bearing(ALL, where_unsaid=True).flow.inputs[0].source.max_bad == limited.inputs[0].source.max_bad
    assert pipeline.bearing(ALL).flow.inputs[0].source.max_bad == ALL
