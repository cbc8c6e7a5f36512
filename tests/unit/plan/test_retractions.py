"""Rows that are withdrawn, from stage to stage: an answer over answers is corrected, and what cannot be is refused."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.testing import Script

ENGINES = ("reference", "columnar")


def source(columns: str = "user string, points long, x double", name: str = "events", time: str = "at") -> ps.Stream:
    return ps.events(f"{columns}, {time} timestamp", name=name).event_time(time, watermark=ps.by_hand())


def counted(mode: str = "retracting", **what: ps.Aggregate) -> ps.Panes:
    """Early panes of a minute's rows for each user."""
    windowed = source().key_by("user").window(ps.tumbling("1 minute"))
    windowed = windowed.trigger(ps.at_watermark(early=ps.count(1)))
    return getattr(windowed, mode)().aggregate(**(what or {"n": ps.rows(), "points": ps.sum("points")}))


def hourly(stream: ps.Stream, key: str, mode: str, **what: ps.Aggregate) -> ps.Panes:
    """Every change is shown, whether something came or was withdrawn."""
    windowed = stream.key_by(key).window(ps.tumbling("1 hour")).trigger(ps.at_watermark(early=ps.after("0")))
    return getattr(windowed, mode)().aggregate(**what)


def row(user: str, at: str, points: int = 1) -> dict[str, Any]:
    return {"user": user, "points": points, "x": 0.5, "at": at}


def refused(make: Any) -> ps.PlanError:
    with pytest.raises(ps.PlanError) as caught:
        make()
    assert caught.value.why
    assert caught.value.instead
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_over_answers_is_corrected_and_not_doubled(engine: str) -> None:
    script = Script(hourly(counted().stream, "user", "accumulating", total=ps.sum("points"), windows=ps.rows(),
                           most=ps.max("n")), engine)  # fmt: skip
    script.batch([row("ann", "12:00", 5)])
    script.expect("user  total  windows  most\nann  5  1  1")
    script.batch([row("ann", "12:00:30", 2), row("ann", "12:01", 4)])
    script.expect("user  total  windows  most\nann  11  2  2")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_that_all_records_have_left_is_withdrawn_or_shown_empty(engine: str) -> None:
    both = {mode: Script(hourly(counted().stream, "n", mode, users=ps.rows(), all=ps.collect("user"), m=ps.min("user")),
                         engine) for mode in ("retracting", "accumulating")}  # fmt: skip
    for script in both.values():
        script.batch([row("ann", "12:00")])
        script.expect('n  users  all  m\n1  1  ["ann"]  ann')
        script.batch([row("ann", "12:00:30")])
    both["retracting"].expect("n  users  op  index\n1  1  -1  0\n2  1  1  0")
    both["accumulating"].expect('n  users  all  m  index\n1  0  []  null  1\n2  1  ["ann"]  ann  0')
    for script in both.values():
        # The window with nothing in it has nothing more to say, also when it expires.
        for _ in range(2):
            assert {pane.key for pane in script.batch([], watermark="+inf").panes} == {(2,)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_that_comes_back_goes_on_with_its_index(engine: str) -> None:
    script = Script(hourly(counted().stream, "n", "retracting", users=ps.rows()), engine)
    script.batch([row("ann", "12:00")])
    script.batch([row("ann", "12:00:01")])
    script.expect("n  users  op  index\n1  1  1  0\n1  1  -1  0\n2  1  1  0")
    script.batch([row("bob", "12:00:02")])
    script.expect("n  users  op  index\n1  1  1  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_that_shows_once_and_has_nothing_left_shows_nothing(engine: str) -> None:
    script = Script(counted().stream.key_by("n").window(ps.tumbling("1 hour")).aggregate(users=ps.rows()), engine)
    script.batch([row("ann", "12:00")])
    script.batch([row("ann", "12:00:30")])
    script.batch([], watermark="+inf")
    script.batch([], watermark="+inf")
    script.expect("n  users\n2  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_count_counts_what_comes_and_not_what_is_withdrawn(engine: str) -> None:
    plan = counted().stream.key_by("user").window(ps.tumbling("1 hour")).trigger(ps.repeat(ps.count(2)))
    script = Script(plan.accumulating().aggregate(n=ps.sum("n")), engine)
    script.batch([row("ann", "12:00")])
    script.expect("user  n")
    script.batch([row("ann", "12:00:01")])  # one more row, and one withdrawal
    script.expect("user  n\nann  2")
    script.batch([row("ann", "12:00:02")])
    script.expect("user  n")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_withdrawal_alone_is_shown_at_the_latest_by_the_last_pane(engine: str) -> None:
    moved = counted().stream.key_by("n").window(ps.tumbling("1 hour")).trigger(ps.repeat(ps.count(1)))
    script = Script(moved.accumulating().aggregate(users=ps.rows()), engine)
    script.batch([row("ann", "12:00")])
    script.batch([row("ann", "12:00:01")])
    script.expect("n  users\n1  1\n2  1")
    script.batch([], watermark="+inf")
    script.batch([], watermark="+inf")
    script.expect("n  users  timing  final\n2  1  early  false\n1  0  on_time  true")


@pytest.mark.parametrize("engine", ENGINES)
def test_sessions_that_merge_withdraw_what_they_gave(engine: str) -> None:
    sessions = source().key_by("user").window(ps.session("1 minute")).trigger(ps.at_watermark(early=ps.count(1)))
    script = Script(hourly(sessions.retracting().aggregate(n=ps.rows()).stream, "user", "accumulating",
                           sessions=ps.rows(), longest=ps.max("n")), engine)  # fmt: skip
    script.batch([row("ann", "12:00"), row("ann", "12:02")])
    script.expect("user  sessions  longest\nann  2  1")
    script.batch([row("ann", "12:01")])
    script.expect("user  sessions  longest\nann  1  3")


@pytest.mark.parametrize("engine", ENGINES)
def test_pieces_over_withdrawals_may_be_below_zero_and_add_up(engine: str) -> None:
    script = Script(hourly(counted().stream, "n", "discarding", points=ps.sum("points"), users=ps.rows()), engine)
    script.batch([row("ann", "12:00", 5)])
    script.expect("n  points  users\n1  5  1")
    script.batch([row("ann", "12:00:01", 2)])
    script.batch([], watermark="+inf")
    script.batch([], watermark="+inf")
    script.expect("n  points  users\n1  -5  -1\n2  7  1\n2  0  0\n1  0  0\n2  0  0")


@pytest.mark.parametrize("engine", ENGINES)
def test_row_steps_between_stages_keep_the_sign(engine: str) -> None:
    stream = counted().stream.where("n > 1").map(lambda one: {"user": one["user"], "n": 10 * one["n"]},
                                                 schema="user string, n long")  # fmt: skip
    script = Script(stream.select("user", n="n + 1").write(ps.memory("signs")).plan, engine)
    for second in range(3):
        script.batch([row("ann", f"12:00:0{second}")])
    script.expect_rows("user  n  op\nann  21  1\nann  21  -1\nann  31  1")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_finds_its_window_expired_is_late_with_its_sign(engine: str) -> None:
    running = source().key_by("user").window(ps.global_window()).trigger(ps.repeat(ps.count(1)))
    panes = running.retracting().aggregate(n=ps.rows()).stream
    script = Script(panes.key_by("user").window(ps.tumbling("1 minute")).aggregate(n=ps.max("n")), engine)
    script.batch([row("ann", "12:00")])
    script.batch([], watermark="13:00")
    script.batch([], watermark="13:00")
    script.expect("user  n\nann  1")
    script.batch([row("ann", "13:00")])
    script.expect_late("user  n  op\nann  1  -1")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_infinity_that_is_withdrawn_leaves_no_trace(engine: str) -> None:
    stream = counted(n=ps.rows(), x=ps.max("x")).stream
    script = Script(hourly(stream, "user", "accumulating", total=ps.sum("x"), mean=ps.mean("x")), engine)
    numbers = [float("-inf"), float("inf"), float("nan")]
    for second, x in enumerate(numbers):
        script.batch([row("ann", f"12:0{second}:00") | {"x": x}])
    for second in range(3):
        script.batch([row("ann", f"12:0{second}:01") | {"x": 2.0}])
    shown = [str(pane.values["total"]) for pane in script.panes]
    assert shown == ["-inf", "nan", "nan", "nan", "nan", "nan"]  # 2, inf, nan: the greater one stands


@pytest.mark.parametrize("engine", ENGINES)
def test_the_least_integer_is_withdrawn_exactly(engine: str) -> None:
    least = -(2**63)
    stream = counted(points=ps.max("points")).stream
    script = Script(hourly(stream, "user", "accumulating", total=ps.sum("points"), mean=ps.mean("points")), engine)
    script.batch([row("ann", "12:00", least)])
    script.batch([row("ann", "12:00:01", 7)])
    assert [pane.values["total"] for pane in script.panes] == [least, 7]
    assert [pane.values["mean"] for pane in script.panes] == [float(least), 7.0]


class Bits:
    """Which values are there, as a sum of powers: one that can take a value back."""

    def zero(self) -> int:
        return 0

    def add(self, held: int, value: int) -> int:
        return held + 10**value

    def retract(self, held: int, value: int) -> int:
        return held - 10**value

    def combine(self, left: int, right: int) -> int:
        return left + right

    def result(self, held: int) -> int:
        return held


class Added(Bits):
    """The same without a way back."""

    retract = None  # type: ignore[assignment]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fold_that_can_take_a_value_back_is_corrected(engine: str) -> None:
    script = Script(hourly(counted().stream, "user", "accumulating", bits=ps.fold("n", Bits(), type="long")), engine)
    script.batch([row("ann", "12:00"), row("bob", "12:00")])
    script.batch([row("ann", "12:00:01")])
    script.expect("user  bits\nann  10\nbob  10\nann  100")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_inner_join_withdraws_what_it_gave(engine: str) -> None:
    names = source("user string, name string", "names", "since")
    joined = counted().stream.select("user", "n").join(names, on="user", between=("-1 hour", "1 hour"))
    script = Script(joined, engine)
    script.batch([row("ann", "12:00"), {"@source": "names", "user": "ann", "name": "Ann", "since": "12:00"}])
    script.expect_rows("user  n  name\nann  1  Ann")
    script.batch([row("ann", "12:00:01")])
    script.expect_rows("user  n  name  op\nann  1  Ann  -1\nann  2  Ann  1")
    script.batch([{"@source": "names", "user": "ann", "name": "Anna", "since": "12:01"}])
    script.expect_rows("user  n  name\nann  2  Anna")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_stands_for_ever_is_corrected_however_old_it_is(engine: str) -> None:
    names = source("user string, name string", "names", "since")
    best = source().key_by("user").top(1, by="points").select("user", "points")
    script = Script(best.join(names, on="user", keep="forever"), engine)
    script.batch([row("ann", "12:00", 5), {"@source": "names", "user": "ann", "name": "Ann", "since": "12:00"}])
    script.expect_rows("user  points  name\nann  5  Ann")
    for _ in range(2):
        script.watermark("13:00")
    script.batch([row("ann", "13:00", 7)])
    script.expect_rows("user  points  name  op\nann  5  Ann  -1\nann  7  Ann  1")
    script.expect_late()
    assert best.join(names, on="user", keep="forever").check() == (
        "the join keeps every row of left for ever: its memory grows with the stream",
        "the join keeps every row of right for ever: its memory grows with the stream",
    )


def test_where_a_correction_may_come_too_late_it_is_said() -> None:
    names = source("user string, name string", "names", "since")
    best = source().key_by("user").top(1, by="points").select("user", "points")
    ever = best.join(names, on="user", keep="forever")
    said = "top.rows corrects what it gave however old it is, and a correction that comes behind W is late for "
    for reads, label in (
        (best.join(names, on="user", between=("0", "1 hour")), "join"),
        (hourly(best, "user", "retracting", n=ps.rows()), "windows"),
        (best.key_by("user").top(1, by="points", window=ps.tumbling("1 hour")), "top"),
    ):
        assert any(one.startswith(said + label) for one in reads.check())
    assert any(one.startswith("join.rows corrects") for one in hourly(ever, "user", "retracting", n=ps.rows()).check())
    assert not any("corrects" in one for one in hourly(counted().stream, "user", "retracting", n=ps.rows()).check())


def test_panes_that_replace_one_another_need_their_withdrawals() -> None:
    wrong = refused(lambda: counted("accumulating").stream)
    assert "replace one another" in wrong.what
    assert ".retracting()" in wrong.instead
    assert counted().stream.schema.names[0] == "user"
    sessions = source().key_by("user").window(ps.session("1 minute"), lateness="1 minute").discarding()
    assert "pieces of windows that merge" in refused(lambda: sessions.aggregate(n=ps.rows()).stream).what


@pytest.mark.parametrize("what", [ps.approx_distinct("points"), ps.approx_quantile("points", 0.5),
                                  ps.fold("n", Added(), type="long")])  # fmt: skip
def test_an_aggregate_that_cannot_take_a_value_back_is_refused(what: ps.Aggregate) -> None:
    assert "may be withdrawn" in refused(lambda: hourly(counted().stream, "user", "accumulating", one=what)).what


def test_in_pieces_only_sums_and_counts_are_corrected() -> None:
    wrong = refused(lambda: hourly(counted().stream, "user", "discarding", most=ps.max("n")))
    assert "in pieces" in wrong.what
    assert hourly(counted().stream, "user", "discarding", total=ps.sum("n"), windows=ps.rows())


MERGING = ps.custom(lambda t: [ps.Window(t, t + 1)], lambda windows: {one: one for one in windows})


@pytest.mark.parametrize("window", [ps.session("1 minute"), ps.event_pairs("1 minute"), MERGING])
def test_windows_that_rows_hold_together_are_refused_over_withdrawals(window: Any) -> None:
    stream = counted().stream.key_by("user").window(window).accumulating()
    assert "may be withdrawn" in refused(lambda: stream.aggregate(n=ps.rows())).what


def test_values_are_kept_of_columns_that_have_an_order() -> None:
    lists = counted(all=ps.collect("points"), n=ps.rows()).stream
    assert "over lists" in refused(lambda: hourly(lists, "user", "accumulating", first=ps.first("all"))).what
    assert hourly(lists, "user", "accumulating", n=ps.count("all"))
    other = source("user string, v long", "other", "then")
    assert "a list 'all'" in refused(lambda: lists.join(other, on="user", between=("0", "1 minute"))).what


class Every(ps.KeyedFunction):
    """Gives what it is given."""

    output = "n long"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.emit(n=event["n"])


@pytest.mark.parametrize("make", [
    lambda stream: stream.key_by("user").process(Every()),
    lambda stream: stream.dedup("user", within="1 minute"),
    lambda stream: stream.key_by("user").match(ps.pattern("a", "n > 1").within("1 minute"), output={"n": "a.n"}),
    lambda stream: stream.join(source("user string", "other", "then"), on="user", between=("0", "1 us"), how="left"),
    lambda stream: stream.temporal_join(source("user string", "other", "then"), on="user"),
    lambda stream: stream.join_table(source("user string", "other", "then"), on="user"),
])  # fmt: skip
def test_stages_that_take_nothing_back_are_refused(make: Any) -> None:
    wrong = refused(lambda: make(counted().stream))
    assert "over rows that may be withdrawn" in wrong.what
    assert make(source().key_by("user").window(ps.tumbling("1 minute")).aggregate(n=ps.rows()).stream)


def test_the_sign_has_a_column_of_its_own() -> None:
    renamed = counted().stream.select("user", op="n")
    assert "called 'op'" in refused(lambda: renamed.write(ps.memory("op"))).what
    assert "called 'op'" in refused(lambda: hourly(renamed, "user", "accumulating", n=ps.rows())).what
    target = counted().stream.write(ps.memory("signs")).plan
    assert target.withdraws()


PIECES = {"n": ps.rows(), "points": ps.sum("points"), "low": ps.min("points"), "mean": ps.mean("points")}


def pieces() -> ps.Stream:
    return counted("discarding", **PIECES).stream


@pytest.mark.parametrize("what", [ps.rows(), ps.mean("points"), ps.max("points"), ps.max("low"), ps.distinct("n"),
                                  ps.sum("mean"), ps.sum("points", where="n > 1"), ps.count("user")])  # fmt: skip
def test_what_of_pieces_is_not_that_of_the_whole_is_refused(what: ps.Aggregate) -> None:
    wrong = refused(lambda: hourly(pieces(), "user", "accumulating", one=what))
    assert "over pieces" in wrong.what
    assert ".retracting()" in wrong.instead


def test_what_of_pieces_is_that_of_the_whole_is_taken() -> None:
    renamed = pieces().select("user", "low", "window_start", total="points", rows="n")
    assert hourly(renamed, "user", "accumulating", points=ps.sum("total"), n=ps.sum("rows"), low=ps.min("low"),
                  users=ps.distinct("user"), since=ps.min("window_start"),
                  own=ps.fold("rows", Added(), type="long"))  # fmt: skip
    assert "key_by" in refused(lambda: hourly(pieces(), "n", "accumulating", points=ps.sum("points"))).what
    for changed in (pieces().with_columns(points="points * 2"), pieces().where("points > 3"),
                    pieces().map(lambda one: one)):  # fmt: skip
        wrong = refused(lambda one=changed: hourly(one, "user", "accumulating", p=ps.sum("points")))
        assert "over pieces" in wrong.what


def test_lateness_is_inherited_and_may_not_shrink() -> None:
    first = source().key_by("user").window(ps.tumbling("1 minute"), lateness="1 hour").retracting()
    panes = first.aggregate(n=ps.rows()).stream
    later = panes.key_by("user").window(ps.tumbling("1 hour")).accumulating().aggregate(n=ps.sum("n"))
    assert later.plan.lateness == first.lateness
    short = panes.key_by("user").window(ps.tumbling("1 hour"), lateness="1 minute").accumulating()
    assert "lateness of 1 minute" in refused(lambda: short.aggregate(n=ps.sum("n"))).what
    other = source("user string", "other", "then")
    assert panes.join(other, on="user", between=("0", "1 minute")).stage.operator.lateness == first.lateness


class Same(ps.KeyedFunction):
    """Gives what it is given."""

    output = "user string, n long"

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.emit(user=key, n=event["n"])


@pytest.mark.parametrize("between", ["process", "table", "top"])
def test_lateness_goes_through_stages_for_which_nothing_is_too_late(engine: str, between: str) -> None:
    """A pane that a window shows when it expires is an hour behind W, and so is what is made of it."""
    first = source().key_by("user").window(ps.tumbling("1 minute"), lateness="1 hour").trigger(ps.at_expiry())
    panes = first.aggregate(n=ps.rows()).stream.key_by("user")
    given = {
        "process": lambda: panes.process(Same()),
        "table": lambda: panes.join_table(ps.events("user string, name string", name="names"), on="user", how="left"),
        "top": lambda: panes.top(1, by="n"),
    }[between]()
    minutes = given.window(ps.tumbling("1 minute"))
    assert minutes.lateness == first.lateness
    script = Script(minutes.accumulating().aggregate(n=ps.sum("n")), engine)
    script.batch([{"user": "ann", "points": 1, "at": "12:00:10"}])
    for at in ("12:59", "13:00:59", "13:01", "13:02"):
        script.watermark(at)
    script.expect({"window": ["12:00", "12:01"], "n": 1, "timing": "late"})
    script.expect_late()


def test_in_order_nothing_can_be_read_that_comes_behind_w_and_what_to_write_is_said() -> None:
    first = source().key_by("user").window(ps.tumbling("1 minute"), lateness="1 hour").trigger(ps.at_expiry())
    panes = first.aggregate(n=ps.rows()).stream.key_by("user")
    error = refused(lambda: panes.process(Same()).key_by("user").process(Same(), ordered=True))
    assert "lateness of 0" in error.what
    assert "leave ordered=True out" in error.instead


def test_what_is_held_of_corrected_windows_does_not_grow() -> None:
    both = Script(counted().stream.key_by("user").window(ps.tumbling("2 minutes")).aggregate(m=ps.max("n")), "columnar")
    names = source("user string, name string", "names", "since")
    joined = Script(counted().stream.select("user", "n").join(names, on="user", between=("0", "1 minute")), "columnar")
    held = []
    for minute in range(40):
        rows = [row(f"u{n % 3}", f"12:{minute:02d}:{n:02d}") for n in range(12)]
        for script in (both, joined):
            for part in (rows[:6], rows[6:]):
                script.batch(part, watermark=f"12:{minute:02d}")
        held.append((both.run.open_windows(), joined.run.open_windows()))
    assert max(held) == max(held[:6])


def test_windows_without_withdrawals_are_kept_as_ever() -> None:
    from penstock.checkpoint.compatibility import binding
    from penstock.engine.stage import engine_of
    from penstock.plan.graph import flow_of

    plain, signed = counted(), hourly(counted().stream, "user", "accumulating", most=ps.max("n"), n=ps.sum("n"))
    for panes, marked in ((plain, False), (signed, True)):
        script = Script(panes, "columnar")
        script.batch([row("ann", "12:00")])
        kept = script.run.snapshot()[0][-1]
        assert any(b'"signs"' in data for data in kept.parts.values()) is marked
        names = [type(one).__name__ for one in engine_of(panes.plan).compiled.accumulators]
        assert names == (["Multiset", "SignedWhole", "SignedCount"] if marked else ["Native", "WholeSum"])
        bound = binding(flow_of((panes.plan,)), 1)
        assert ("withdrawn" in bound["2 windows: memory" if marked else "memory"]) is marked
