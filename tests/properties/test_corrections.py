"""Corrections flow through: whatever triggers and modes, both engines agree, and what is left is the batch answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, note, strategies as st

import penstock as ps
from penstock.model.panes import Pane
from penstock.model.windows import WindowRule
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from tests.properties.comparing import same_value
from tests.properties.profile import law
from tests.properties.streams import rows_near
from tests.properties.test_stages_agree import FLOWS, check

ENGINES = ("reference", "columnar")
TRIGGERS = (
    ps.at_watermark(), ps.at_watermark(early=ps.count(1)), ps.at_watermark(early=ps.count(3), late=ps.count(2)),
    ps.repeat(ps.count(1)), ps.repeat(ps.count(2)), ps.at_watermark(early=ps.every("4 us"), late=ps.after("2 us")),
    ps.repeat(ps.after("3 us")), ps.count(2).then(ps.repeat(ps.count(1))), ps.at_watermark(early=ps.when("n > 2")),
)  # fmt: skip
WINDOWS = (
    ps.tumbling("10 us"), ps.sliding("20 us", "10 us"), ps.session("6 us"),
    ps.custom(lambda t: [ps.Window(t // 8 * 8, t // 8 * 8 + 8)]),
)  # fmt: skip
LATER = (ps.tumbling("30 us"), ps.sliding("40 us", "20 us"), ps.tumbling("60 us"))
LATENESS = "1000 us"  # so that nothing is late, and the batch has the same rows

ADDED = {"n": ps.sum("n"), "w": ps.rows(), "c": ps.count("v"), "v": ps.sum("v")}
KEPT = {
    "n": ps.sum("n"), "mean": ps.mean("v"), "low": ps.min("v"), "high": ps.max("x"), "d": ps.distinct("v"),
    "var": ps.variance("n"), "all": ps.collect("n", 4), "best": ps.top_k("v", 2, by="n"), "end": ps.last("v"),
    "some": ps.sum("n", where="v > 2"), "top": ps.top_k("x", 2),
}  # fmt: skip
# Of equal ranks the batch shows what came first, and a corrected window the least value that is left.
UNTIED = {name: one for name, one in KEPT.items() if name not in ("all", "best", "end")}


def source() -> ps.Stream:
    columns = ps.events("k string, v long, x double, at long")
    return columns.event_time("at", unit="us", watermark=ps.by_hand(max_skew=None))


def staged(stream: ps.Stream, key: str, window: WindowRule, trigger: Any, mode: str, what: Any) -> ps.Panes:
    windowed = stream.key_by(key).window(window, lateness=LATENESS).trigger(trigger)
    return getattr(windowed, mode)().aggregate(**what)


def once(stream: ps.Stream, key: str, window: WindowRule, what: Any) -> ps.Panes:
    """The same windows as a batch has them: each shown once."""
    return stream.key_by(key).window(window).aggregate(**what)


FIRST = {"n": ps.rows(), "v": ps.sum("v"), "x": ps.max("x")}


@st.composite
def chains(draw: st.DrawFn, mode: str, what: dict[str, ps.Aggregate]) -> tuple[ps.Panes, ps.Panes]:
    """Two stages or three with any triggers, and the same as a batch has them."""
    bounds = draw(st.sampled_from(WINDOWS))
    live = staged(source(), "k", bounds, draw(st.sampled_from(TRIGGERS)), "retracting", FIRST).stream
    batch = once(source(), "k", bounds, FIRST).stream
    if draw(st.booleans()):
        bounds, middle = draw(st.sampled_from(LATER)), {"n": ps.sum("n"), "v": ps.max("v"), "x": ps.sum("x")}
        key = draw(st.sampled_from(["k", "n"]))
        middle = {("n2" if key == "n" and name == "n" else name): one for name, one in middle.items()}
        live = staged(live, key, bounds, draw(st.sampled_from(TRIGGERS[:8])), "retracting", middle).stream
        batch = once(batch, key, bounds, middle).stream
    bounds, key = draw(st.sampled_from(LATER)), draw(st.sampled_from(["k", "v"] if "k" in live.schema.names else ["v"]))
    trigger = draw(st.sampled_from(TRIGGERS))
    if key == "v":
        what = {("v2" if name == "v" else name): one for name, one in what.items()}
    return staged(live, key, bounds, trigger, mode, what), once(batch, key, bounds, what)


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[list[dict[str, Any]], int, int, bool]]:
    """Rows, now, W by hand, and whether the run is restored before them."""
    made, now, base, mark = [], 1000, 0, 0
    for _ in range(draw(st.integers(2, 6))):
        base += draw(st.sampled_from([8, 3, 12, 0, 25]))
        now += draw(st.integers(0, 8))
        mark = max(mark, base - draw(st.integers(-10, 25)))
        rows = draw(st.lists(rows_near(base, odd=False), max_size=6))
        made.append((rows, now, mark, draw(st.integers(0, 3)) == 3))
    return made


def played(panes: ps.Panes, engine: str, batches: list[Any]) -> list[Outcome]:
    """All of a run, to the end of its input."""
    script, outcomes = Script(panes, engine), []
    for rows, now, mark, restart in batches:
        if restart:
            script.restart()
        outcomes.append(script.batch(list(rows), now=now, watermark=mark))
    outcomes += [script.batch((), watermark="+inf") for _ in script.flow.stages]
    assert not any(one.late for outcome in outcomes for one in outcome.stages)
    assert script.counts.conserved(0)
    return outcomes


def answer(batch: ps.Panes, batches: list[Any]) -> dict[Any, Pane]:
    """What the batch shows: all rows at once."""
    rows = [row for some, *_ in batches for row in some]
    shown = [pane for one in played(batch, "reference", [(rows, 1000, None, False)]) for pane in one.panes]
    return {(repr(pane.key), pane.window): pane for pane in shown}


def same_answer(found: dict[Any, Pane], wanted: dict[Any, Pane]) -> None:
    assert found.keys() == wanted.keys()
    for place, pane in found.items():
        for name, value in pane.values.items():
            assert same_value(name, value, wanted[place].values[name]), (str(pane), str(wanted[place]))


@law(60)
@given(st.data(), st.sampled_from(["accumulating", "retracting"]), st.sampled_from([ADDED, KEPT]))
def test_both_engines_agree_on_corrections(data: st.DataObject, mode: str, what: dict[str, ps.Aggregate]) -> None:
    live, _ = data.draw(chains(mode, what))
    note(live.explain())
    one, two = Script(live, "reference"), Script(live, "columnar")
    for rows, now, mark, restart in data.draw(steps()):
        note(f"{rows} at {now}, W {mark}")
        if restart:
            one.restart()
            two.restart()
        check(one, two, *(run.batch(list(rows), now=now, watermark=mark) for run in (one, two)))
    for _ in one.flow.stages:
        check(one, two, *(run.batch((), watermark="+inf") for run in (one, two)))
    assert one.run.open_windows() == 0


@law(60)
@given(st.data(), st.sampled_from(["reference", "columnar"]), st.sampled_from([ADDED, UNTIED]))
def test_the_last_accumulating_pane_is_the_answer_of_the_batch(
    data: st.DataObject, engine: str, what: dict[str, ps.Aggregate]
) -> None:
    live, batch = data.draw(chains("accumulating", what))
    note(live.explain())
    batches = data.draw(steps())
    shown = [pane for one in played(live, engine, batches) for pane in one.panes]
    last = {(repr(pane.key), pane.window): pane for pane in shown}
    counted = "w" if "w" in what else "n"
    filled = {place: pane for place, pane in last.items() if not _empty(pane, counted)}
    same_answer(filled, answer(batch, batches))


@law(60)
@given(st.data(), st.sampled_from(["reference", "columnar"]), st.sampled_from([ADDED, UNTIED]))
def test_retractions_cancel(data: st.DataObject, engine: str, what: dict[str, ps.Aggregate]) -> None:
    live, batch = data.draw(chains("retracting", what))
    note(live.explain())
    batches = data.draw(steps())
    stands: dict[Any, Pane] = {}
    times: Counter[Any] = Counter()
    for pane in (pane for one in played(live, engine, batches) for pane in one.panes):
        place = (repr(pane.key), pane.window)
        times[place] += pane.op
        assert times[place] in (0, 1), str(pane)
        if pane.op > 0:
            stands[place] = pane
    same_answer({place: pane for place, pane in stands.items() if times[place]}, answer(batch, batches))


@law(60)
@given(st.data(), st.sampled_from(["reference", "columnar"]))
def test_corrected_pieces_add_up_to_the_answer_of_the_batch(data: st.DataObject, engine: str) -> None:
    what = {name: ADDED[name] for name in ("n", "w", "c")}
    live, batch = data.draw(chains("discarding", what))
    note(live.explain())
    batches = data.draw(steps())
    totals: dict[Any, Counter[str]] = {}
    for pane in (pane for one in played(live, engine, batches) for pane in one.panes):
        total = totals.setdefault((repr(pane.key), pane.window), Counter())
        total.update(dict(pane.values))  # type: ignore[arg-type]
    wanted = {place: Counter(dict(pane.values)) for place, pane in answer(batch, batches).items()}
    assert {place: total for place, total in totals.items() if total["w"]} == wanted


keyed = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=4)


@pytest.mark.parametrize("name", ["top, join for ever", "all time, join for ever, all time"])
@law(20)
@given(batches=st.lists(st.tuples(keyed, keyed, st.booleans()), max_size=5), engine=st.sampled_from(ENGINES))
def test_what_is_corrected_long_after_w_has_passed_it_is_corrected_for_ever(
    batches: list[Any], engine: str, name: str
) -> None:
    """W is past all rows of a batch when the next one comes; in the end that stands which stands in one batch."""
    script, whole = Script(FLOWS[name](), engine), Script(FLOWS[name](), "reference")
    every: list[dict[str, Any]] = []
    for number, (ones, twos, restart) in enumerate(batches):
        rows = [{"k": k, "v": v, "x": None, "at": 50 * number + at} for k, v, at in ones]
        rows += [{"@source": "two", "k": k, "v": v, "x": None, "then": 50 * number + at} for k, v, at in twos]
        script.batch(list(rows), now=1000)
        script.batch([{"k": "none", "at": 50 * number + 30}, {"@source": "two", "k": "none", "then": 50 * number + 30}])
        script.batch([])
        if restart:
            script.restart()
        every += rows
    script.end()
    whole.batch(every, now=1000)
    whole.end()
    assert not script.late
    assert _standing(script) == _standing(whole)


def _standing(script: Script) -> Counter[str]:
    """What was given and not taken back."""
    stands: Counter[str] = Counter()
    for one in (one for one in script.rows if one.row["k"] != "none"):
        stands[repr(sorted(one.row.items()))] += one.op
    for pane in (pane for pane in script.panes if pane.key != ("none",)):
        stands[repr((pane.key, sorted(pane.values.items())))] += pane.op
    assert all(count >= 0 for count in stands.values())
    return +stands


def _empty(pane: Pane, counted: str) -> bool:
    """Whether the pane says that all was withdrawn: nothing is counted, and there is no other value."""
    return not pane.values[counted] and not any(pane.values.values())
