"""In the engine no Python loop runs per record or per key: where values leave their columns is listed, with the reason.

Two ways to see one. By reading: the places in which a column becomes Python's own values, or a loop counts its turns.
By counting: no line of the engine may run more often because a batch has more rows of the same keys and windows.
Neither knows what anything is called: functions are listed as themselves, wherever they lie.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import penstock as ps
import penstock.engine
from penstock.engine import expressions, outputs, stage, triggers, watermarks
from penstock.engine.aggregates import folds, ordered, registry, sketches
from penstock.engine.columns import arrays as plain, keys, sorting
from penstock.engine.in_process import ColumnarRun
from penstock.engine.ingest import event_time, pre_aggregate, row_steps
from penstock.engine.operators import deduplicate, enrich, enrich_cache
from penstock.engine.operators.pattern import (
    automaton,
    buffer,
    conditions,
    conditions as pattern_asking,
    matcher,
    state as pattern_memory,
    step as pattern,
)
from penstock.engine.operators.process import calls, rules, state, step
from penstock.engine.shuffle import cells, rows as packing
from penstock.engine.state import cache, codec, row_runs, rows as kept_rows, runs
from penstock.engine.windows import assignment, custom, regroup, slices
from penstock.runtime.batch import Arrival, Tick

ENGINE = Path(penstock.engine.__file__ or "").parent
HANDED_IN = ENGINE / "in_process.py"  # takes rows in hand, from tests and recordings, and gives such
FILES = sorted(path for path in ENGINE.rglob("*.py") if path != HANDED_IN)

LISTED: dict[str, list[Callable[..., Any]]] = {
    # per record, and meant to be: what users write in Python is called with Python's values
    "a user's function of a row, or of a batch that has thrown": [row_steps._each, row_steps._map_batches],
    "a keyed function is called with each event and timer of its key": [
        calls.Calls._events, calls.Calls._line, calls.Calls._fire_one, state.plain_list,
        state.user_rows,
    ],
    "the events of a match that conditions wait for, key by key": [
        pattern.Matching._in_hand, matcher.Play.seen, pattern_asking._by_rows, pattern_memory.listed,
    ],
    "rows of one id, so near one another that marking them took too many rounds": [deduplicate._walked],
    "the values that a fold or sketch is given": [plain.plain_values, registry.SignedFold.partial],
    # per key, or per key and window, with users' functions or state
    "a fold or sketch of each key and window": [
        sketches.partial_each, sketches.grouped_each, sketches.pairwise_each, folds.Folded.result,
        sketches.Sketch.result,
    ],
    "the state of each key that a keyed function is called for": [
        step.Keyed._calls, state.StateColumns.read, state._written_timers, state._lists,
    ],
    "the keys that a pattern has something of": [
        pattern.Matching._played, matcher.Play.expired, matcher.Play._settled,
    ],
    "a user's windows for each different time, and what merge made of each touched key": [
        assignment._custom, custom._places, row_steps._countable,
    ],
    # per bad row
    "bad rows": [
        row_steps._row, outputs.quarantined, stage.unusable_table, event_time.stamp, event_time.instants,
        event_time._given, enrich.Enriching._dealt,
    ],
    # per different value of few
    "different days": [assignment._calendar],
    "different texts": [event_time._texts, expressions._each_distinct],
    "different names of partitions": [step.Keyed._in_line, kept_rows.kept_rows],
    "decimals as text, and words of a text: as many turns as the longest has": [keys._texts],
    "texts, where one is longer than 512 bytes: those are hashed by their digest": [keys._bytes_of],
    "rules, when they have changed": [rules.KeptRules.shown],
    "a snapshot: at most 512 different delays a chunk": [watermarks.encoded],
    # a fixed or bounded number of turns
    "columns": [
        pre_aggregate._by_arrow, regroup._by_arrow, codec._read, keys.side_by_side, enrich_cache._encoded,
        kept_rows._encoded_rows, state._row_maker, ordered.Ordered._items, cells.read_blob,
    ],
    "shards": [cells.dealt, packing.dealt_rows],
    "stages": [watermarks.given, watermarks.end_batch],
    "nodes of a trigger, steps and registers of a pattern": [
        triggers._Tree.reset, automaton.Automaton.numbers, conditions.kept_code,
    ],
    "runs and parts to merge, cut or let go": [
        cache.Cache.put, enrich_cache.tidy, row_runs.Shelf.tidy, buffer._fewer, runs._like, runs._pieces,
        slices._compacted,
    ],
    "the shelves that keys lie on, at most 256": [
        pattern.Matching._live, pattern_memory.Rest.opened, pattern_memory.Rest.shelved,
    ],
    "a bounded number of rounds": [deduplicate.Deduplicated._first, sorting._contenders],
    "chunks of 10,000 delays": [watermarks._remembered],
}  # fmt: skip
CONVERSIONS = (".tolist", ".to_pylist", ".vectorize", ".frompyfunc", ".fromiter", ".apply_along_axis", ".iterrows")


def place(function: Callable[..., Any]) -> tuple[str, str]:
    """The file of a function, and its name there."""
    whole = inspect.unwrap(getattr(function, "func", function))  # of a cached property, the function
    return Path(whole.__code__.co_filename).relative_to(ENGINE).as_posix(), whole.__qualname__


PLACES = {place(function): reason for reason, functions in LISTED.items() for function in functions}


def loose(tree: ast.AST, name: str = "", *, within: bool = False) -> Iterator[tuple[str, int, str]]:
    """Where values leave their columns, or a loop counts its turns: the outermost function, the line, and the text."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not within:
            yield from loose(node, f"{name}.{node.name}".lstrip("."), within=isinstance(node, ast.FunctionDef))
            continue
        if isinstance(node, ast.While):
            yield name, node.lineno, f"while {ast.unparse(node.test)}"
        elif isinstance(node, ast.For | ast.comprehension):
            if any(isinstance(one, ast.Call) and counts(one) for one in ast.walk(node.iter)):
                yield name, node.iter.lineno, f"for … in {ast.unparse(node.iter)}"
        elif isinstance(node, ast.Call) and called(node) in CONVERSIONS:
            yield name, node.lineno, ast.unparse(node)
        yield from loose(node, name, within=within)


def counts(node: ast.Call) -> bool:
    """Whether it is a range of as many turns as something else has."""
    return called(node) == "range" and not all(isinstance(arg, ast.Constant) for arg in node.args)


def called(node: ast.Call) -> str:
    """What is called: a method as `.name`."""
    return f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def read(path: Path) -> list[tuple[str, int, str]]:
    """Those of a file."""
    return list(loose(ast.parse(path.read_text())))


def test_the_whole_engine_is_looked_at() -> None:
    assert len({path.parent for path in FILES}) > 1
    assert {place(function)[0] for functions in LISTED.values() for function in functions} <= {
        path.relative_to(ENGINE).as_posix() for path in FILES
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ENGINE).as_posix())
def test_values_leave_their_columns_where_it_is_listed(path: Path) -> None:
    file = path.relative_to(ENGINE).as_posix()
    found = [f"{file}:{line} in {name}: {text}" for name, line, text in read(path) if (file, name) not in PLACES]
    assert not found, "columns, not rows: put it into columns, or list it with its reason:\n" + "\n".join(found)


def test_what_is_listed_is_there() -> None:
    there = {(path.relative_to(ENGINE).as_posix(), name) for path in FILES for name, *_ in read(path)}
    assert PLACES.keys() <= there, f"no longer a loop, take it off the list: {sorted(PLACES.keys() - there)}"


@pytest.mark.parametrize(
    "code",
    ["for row in batch.to_pylist(): pass", "{k: 1 for k in hashes.tolist()}", "times.tolist()",
     "while at < len(rows): pass", "sum(map(int, times.tolist()))", "for i in range(len(times)): pass",
     "np.vectorize(f)(x)", "class A:\n def f(self):\n  def g():\n   return [i for i in range(n)]"],
)  # fmt: skip
def test_a_loop_over_values_is_seen(code: str) -> None:
    assert list(loose(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["for column in keys: pass", "[a for a, b in zip(held, other)]", "for i in range(3): pass"]
)
def test_a_loop_over_columns_is_fine(code: str) -> None:
    assert not list(loose(ast.parse(code)))


# By counting


FEW, MORE = 300, 3_000
KEYS, SECONDS = 6, 10


def events(name: str = "a") -> ps.Stream:
    return ps.events("k string, v long, x double, at timestamp", name=name).event_time(
        "at", watermark=ps.bounded("2 seconds", idle=None)
    )


async def nothing(row: dict[str, Any]) -> None:
    """An answer."""


def plans() -> dict[str, Any]:
    """A stage of each kind that calls no function of a user for each record."""
    one, two = events(), events("b")
    by_key, early = one.key_by("k"), ps.at_watermark(early=ps.count(3) | ps.every("1 second"), late=ps.count(1))
    sums = {"n": ps.rows(), "v": ps.sum("v"), "most": ps.max("x"), "first": ps.first("v"), "top": ps.top_k("v", 2),
            "different": ps.distinct("v"), "spread": ps.variance("x")}  # fmt: skip
    panes = by_key.window(ps.tumbling("4 seconds"), lateness="1 second").trigger(early)
    return {
        "tumbling": by_key.window(ps.tumbling("2 seconds")).aggregate(**sums),
        "early": panes.accumulating().aggregate(**sums),
        "retracting": panes.retracting().aggregate(n=ps.rows(), v=ps.sum("v")),
        "sliding": by_key.window(ps.sliding("4 seconds", every="1 second")).aggregate(n=ps.rows(), x=ps.mean("x")),
        "sessions": by_key.window(ps.session("3 seconds")).aggregate(**sums),
        "calendar": by_key.window(ps.calendar("day", zone="Europe/Berlin")).aggregate(n=ps.rows()),
        "rows": one.where("v > 1").select("k", "at", y="v * 2 + 1").dedup("k", "y", within="2 seconds"),
        "last": one.dedup("k", within="1 second", keep="last"),
        "top": by_key.top(3, by="v"),
        "top of windows": by_key.top(3, by="v", window=ps.tumbling("2 seconds")),
        "join": one.join(two.where("v < 3"), on="k", between=("0", "1 second"), how="left", prefix="b_"),
        "temporal": one.temporal_join(two, on="k", prefix="b_"),
        "table": one.join_table(two, on="k", prefix="b_", how="left"),
        "enrich": one.enrich(nothing, on="k", output="y long", cache="1 hour"),
        "after retractions": panes.retracting().aggregate(n=ps.rows(), v=ps.sum("v")).stream.key_by("n").window(
            ps.tumbling("8 seconds")).accumulating().aggregate(v=ps.sum("v")),
    }  # fmt: skip


def turns(plan: Any, number: int) -> Counter[tuple[str, str]]:
    """How often the lines of each function ran in two batches of so many rows, of the same keys and seconds."""
    run = ColumnarRun(plan.plan if isinstance(plan, ps.Panes) else plan.stage)
    found: Counter[tuple[str, str]] = Counter()

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            found[seen(frame)] += 1
        return line

    def call(frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        return line if file.startswith(str(ENGINE)) and file != str(HANDED_IN) else None

    for batch in range(2):
        arrivals = [
            Arrival(one.source.name, "0", row, {"k": f"k{row % KEYS}", "v": row % 7, "x": row % 5 / 2, "at": at})
            for one in run.flow.inputs
            for row in range(number)
            for at in [1_000_000 * (batch * SECONDS + row * SECONDS // number) + row % KEYS]
        ]
        before = sys.gettrace()
        sys.settrace(call)
        try:
            run.batch(arrivals, Tick(batch * 1_000_000))
        finally:
            sys.settrace(before)
    return found


def seen(frame: FrameType) -> tuple[str, str]:
    """The function a frame is of; what is within another counts as that."""
    name = frame.f_code.co_qualname.partition(".<locals>")[0]
    return Path(frame.f_code.co_filename).relative_to(ENGINE).as_posix(), name


@pytest.mark.parametrize("name", plans())
def test_more_rows_are_no_more_turns(name: str) -> None:
    few, more = (turns(plans()[name], number) for number in (FEW, MORE))
    grown = {one: (few[one], turned) for one, turned in more.items() if turned > 2 * few[one] + 100}
    assert not grown, f"a loop runs for each record: {grown}"


def test_a_loop_that_runs_for_each_record_is_counted() -> None:
    """A user's function of a row is called for each."""
    plan = events().map(lambda row: row, schema="k string, v long, x double, at timestamp").dedup("k", within="1 s")
    few, more = (turns(plan, number) for number in (FEW, MORE))
    assert any(turned > 2 * few[one] + 100 for one, turned in more.items())
