"""How stages are put together, and what is refused before anything runs."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.plan.graph import flow_of
from penstock.testing import Script


def timed(columns: str, name: str) -> ps.Stream:
    return ps.events(f"{columns}, at timestamp", name=name).event_time("at", watermark=ps.by_hand())


def refused(make: object) -> ps.PlanError:
    with pytest.raises(ps.PlanError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.why
    assert caught.value.instead
    return caught.value


def counted(stream: ps.Stream) -> ps.Panes:
    return stream.key_by("key").window(ps.tumbling("1 minute")).aggregate(n=ps.rows())


def test_stages_come_after_those_they_read():
    one, two = timed("key string", "one"), timed("key string, v long", "two").select("key", "v")
    joined = one.join(two, on="key", between=("0", "1 minute"))
    last = counted(joined)
    flow = flow_of((last.plan, joined.stage))
    assert [stage.label for stage in flow.stages] == ["join", "windows"]
    assert [one.source.name for one in flow.inputs] == ["one", "two"]
    assert flow.above(0) == ()
    assert flow.above(1) == (0,)
    assert flow.own_sources(0) == {"one", "two"}
    assert flow.own_sources(1) == frozenset()
    assert [feed.stage for feed in flow.fed_from(0, "rows")] == [1]


def test_a_source_has_one_event_time_whoever_reads_it():
    events = ps.events("key string, at timestamp, v long", name="events")
    slow, quick = (events.event_time("at", watermark=ps.bounded(delay)) for delay in ("1 hour", "1 second"))
    wrong = refused(
        lambda: ps.pipeline("p", *(counted(one).write(ps.memory(n)) for n, one in (("a", slow), ("b", quick))))
    )
    assert "two event times" in wrong.what


def test_two_sources_of_one_name_are_refused():
    one, other = timed("key string", "same"), timed("key string, v long", "same").select("key", "v")
    wrong = refused(lambda: flow_of((one.join(other, on="key", between=("0", "1 minute")).stage,)))
    assert "two sources are called 'same'" in wrong.what


def test_outputs_of_one_pipeline_have_something_in_common():
    def made() -> ps.Pipeline:
        return ps.pipeline("p", counted(timed("key string", "a")).write(ps.memory("a")),
                           counted(timed("key string", "b")).write(ps.memory("b")))  # fmt: skip

    assert "nothing in common" in refused(made).what
    shared = timed("key string, v long", "a")
    both = ps.pipeline("p", counted(shared).write(ps.memory("a")),
                       counted(shared.where("v > 1")).write(ps.memory("b")))  # fmt: skip
    assert len(both.flow.stages) == 2


def test_panes_that_replace_one_another_are_not_handed_on():
    windowed = timed("key string", "a").key_by("key").window(ps.tumbling("1 minute"), lateness="1 hour")
    wrong = refused(lambda: windowed.accumulating().aggregate(n=ps.rows()).stream)
    assert "replace one another" in wrong.what
    assert windowed.retracting().aggregate(n=ps.rows()).stream.schema.names[0] == "key"
    assert windowed.discarding().aggregate(n=ps.rows()).stream.schema.names[0] == "key"


def test_a_stage_over_rows_without_event_time_is_refused():
    bare = ps.events("key string, at timestamp")
    assert "no event time" in refused(lambda: bare.dedup("key", within="1 minute")).what


def test_a_join_has_late_rows_of_each_side():
    one = timed("key string", "one")
    two = ps.events("key string, then timestamp", name="two").event_time("then", watermark=ps.by_hand())
    joined = one.join(two, on="key", between=("0", "1 minute"))
    assert joined.late_of("right").write(ps.memory("late")).name == "right"
    assert "no side 'both'" in refused(lambda: joined.late_of("both")).what
    assert "no side 2" in refused(lambda: joined.late_of(2)).what
    assert "no output 'side'" in refused(lambda: joined.output("side")).what
    assert "no output ['side']" in refused(lambda: joined.output(["side"])).what


@pytest.mark.parametrize("join", ["join", "temporal_join", "join_table"])
def test_a_join_that_does_not_say_on_which_columns_is_refused(join):
    one, two = timed("key string", "one"), timed("key string, v long", "two")
    wrong = refused(lambda: getattr(one, join)(two))
    assert wrong.what == f"{join} does not say on which columns"
    assert wrong.instead.startswith(f'write {join}(..., on="ad")')


def test_a_stream_is_written_as_it_is():
    output = timed("key string, v long", "a").where("v > 1").select("key").write(ps.memory("rows"))
    assert (output.kind, output.name) == ("rows", "rows")
    script = Script(output.plan)
    script.batch([{"key": "a", "v": 2, "at": "12:00"}, {"key": "b", "v": 1, "at": "12:00"}])
    script.expect_rows("key\na")


def test_a_stream_without_event_time_is_written_in_processing_time():
    output = ps.events("key string").write(ps.memory("rows"))
    assert output.plan.inputs[0].time.basis == "processing"


def test_rows_after_a_step_are_not_the_stages_own():
    once = timed("key string, v long", "a").dedup("key", within="1 minute")
    assert once.write(ps.memory("a")).plan is once.stage
    assert once.where("v > 1").write(ps.memory("b")).plan is not once.stage


def test_split_says_what_is_wrong():
    scores = timed("v long", "a")
    assert "nothing" in refused(lambda: scores.split()).what
    assert "rest" in refused(lambda: scores.split(rest="v > 1")).what


def test_a_script_of_rows_has_no_panes():
    script = Script(timed("key string", "a").dedup("key", within="1 minute"))
    with pytest.raises(ps.CaseError, match="has no panes"):
        script.expect()
    with pytest.raises(ps.CaseError, match="has no output"):
        script.expect_rows(output="panes")


def test_lateness_does_not_shrink_from_stage_to_stage():
    once = timed("key string", "a").dedup("key", within="1 minute", lateness="1 hour")
    keyed = once.key_by("key").window(ps.tumbling("1 minute"), lateness="0")
    wrong = refused(lambda: keyed.aggregate(n=ps.rows()))
    assert "lateness of 0" in wrong.what
    assert "1 hour" in wrong.instead
    inherited = once.key_by("key").window(ps.tumbling("1 minute")).discarding().aggregate(n=ps.rows())
    assert inherited.plan.lateness == once.stage.operator.lateness
