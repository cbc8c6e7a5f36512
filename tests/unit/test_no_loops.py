"""In the engine no Python loop runs per record or per key: every loop is over something short, or is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock.engine

ENGINE = Path(penstock.engine.__file__ or "").parent
FILES = sorted(ENGINE.glob("*.py"))

# What a loop may run over anywhere: there are as many of these as a plan, a schema or a batch has parts.
SHORT = {
    "columns of a table": """
        keys columns windows.keys cells.keys held outputs self.columns items.columns names news output.names held.names
        key_types compiled.result_types compiled.plan.keys NUMBERS CELL_NUMBERS _GONE _FIELDS several.last windows.last
        parts.items columns.items flat.items bodies.items self.types accumulator.types accumulator.regrouped specs
        groups varying ufuncs made.num_columns fields head model self.plan.key_schema.columns filled every
        self.plan.result_schema.columns panes.column_names compiled.row_schema.names blob.cells.keys blob.cells.held
        group model.held model.keys columns.values tables.items
        first.trigger second.trigger windows.trigger several.trigger self.trigger state
    """,
    "aggregates of a plan": """
        accumulators self.accumulators compiled.accumulators self.plan.aggregates compiled.plan.aggregates
        plan.aggregates wanted cells.held self.result_types compiled.aggregates self.aggregates computed
    """,
    "inputs, row steps and expressions of a plan": """
        compiled.plan.inputs plan.inputs one.before one.after flow.inputs flow.stages flow.above above sources made.late
        made.outputs.items outputs.items shown.column_names sides here self.stage.entries nodes typed.args
        typed.node.args pairs choices
    """,
    "nodes of a trigger": """
        trigger.walk compiled.plan.trigger.walk self.plan.trigger.walk stateful slots places whens finder.delays
        finder.wakers
    """,
    "blobs, partitions and runs": """
        parts blobs reports runs memory.runs memory.slices.runs both tick.partitions heard spoken.items timed
        state.spoken.items timed.items timed.values partitions.items partitions.values chunks one.chunks
        table.combine_chunks.to_batches memory.windows memory.events _parts all_cells run.pieces self.pieces
        self.blobs cells.keys rows.keys shards
        slices.pieces takes.items extracted.takes.items more.items said _RUN _PIECE
    """,
}  # fmt: skip
SHORT_NAMES = frozenset(name for names in SHORT.values() for name in names.split())

# Loops over values, each with the reason why it is no loop per record or per key of an ordinary plan.
LISTED = {
    ("cache.py", "Cache.only"): "parts that a memory has no more",
    # users' functions and sketches: per touched (key, window), as explain() says
    ("opaque.py", "partial_each"): "a fold or sketch of each (key, window)",
    ("opaque.py", "grouped_each"): "a fold or sketch of each (key, window)",
    ("opaque.py", "pairwise_each"): "a fold or sketch of each (key, window)",
    ("folds.py", "Folded.result"): "a fold's result",
    ("signed.py", "SignedFold.partial"): "a fold of each (key, window), whose values may be withdrawn",
    ("sketches.py", "Sketch.result"): "a sketch's result",
    ("plain.py", "plain_values"): "the values that a fold or sketch is given",
    ("rows.py", "_each"): "a user's function of a row",
    ("rows.py", "_map_batches"): "row by row, after a user's function of a batch has thrown",
    ("rows.py", "_countable"): "a user's assign, for each different time",
    ("assign.py", "_custom"): "a user's assign, for each different time",
    ("custom.py", "_places"): "a user's assign for each different time, and what merge made of it for each touched key",
    ("custom.py", "_mapped"): "a user's merge for each touched key",
    # per bad row
    ("rows.py", "Read.quarantine"): "bad rows",
    ("rows.py", "_row"): "a bad row",
    ("rows.py", "_evaluated"): "bad rows, found by halving",
    ("outputs.py", "quarantined"): "bad rows",
    ("stages.py", "unusable_table"): "bad rows",
    ("stages.py", "_unusable"): "bad rows",
    ("stamp.py", "stamp"): "rows without a usable time",
    ("stamp.py", "instants"): "rows without a usable time",
    ("stamp.py", "_given"): "rows whose mark cannot be read",
    # per different value of few
    ("stamp.py", "_texts"): "different texts that are not plain ISO times",
    ("expression.py", "_each_distinct"): "different texts, where Arrow's casts mean something else",
    ("expression.py", "_like"): "letters of a pattern",
    ("assign.py", "_calendar"): "different days",
    ("keys.py", "_texts"): "decimals as text, and words of a text: as many turns as the longest has",
    ("keys.py", "_bytes_of"): "texts, where one is longer than 512 bytes: those are hashed by their digest",
    # columns under a name that elsewhere may be rows
    ("cells.py", "pair_held"): "accumulators",
    ("cells.py", "put_held"): "accumulators",
    ("interleave.py", "interleaved"): "columns of an accumulator",
    ("keys.py", "equal"): "key columns",
    ("matching.py", "exact_match"): "the two columns of bounds",
    ("encoding.py", "encoded"): "the tables of a part, and the runs it took from",
    ("encoding.py", "_flat"): "columns of a part",
    ("encoding.py", "_read"): "columns of a part",
    ("order.py", "in_order"): "columns that order",
    ("multiset.py", "Multiset._held"): "what ranks a value, and the value",
    ("signed_numbers.py", "SignedFloat.partial"): "NaN and the two infinities",
    ("signed_numbers.py", "SignedFloat.pairwise"): "columns of an accumulator",
    ("windows.py", "_after"): "aggregates",
    ("spans.py", "fold_grid"): "accumulators and their columns",
    ("spans.py", "_reductions"): "accumulators",
    ("expression.py", "_extreme"): "operands of least and greatest",
    ("trigger.py", "_Tree.reset"): "nodes of a trigger",
    ("trigger.py", "slots"): "nodes of a trigger",
    ("trigger.py", "_with_parents"): "parts of a trigger",
    # a fixed or bounded number of turns
    ("order.py", "_contenders"): "one turn for each of the k of a top_k",
    ("slices.py", "_compacted"): "runs to merge",
    ("slices.py", "_folded"): "pieces of runs",
    ("slices.py", "_fold_evenly"): "the two halves",
    ("table.py", "concat_windows"): "tables to put together",
    ("cache.py", "Cache.put"): "parts that leave the cache",
    ("memory.py", "part_names"): "runs and their pieces",
    ("memory.py", "restored"): "runs and their pieces",
    ("runs.py", "_needed"): "ways in which rows are found",
    ("runs.py", "grown"): "runs",
    ("runs.py", "_like"): "runs",
    ("runs.py", "_pieces"): "a million rows a turn",
    ("step.py", "_wanted"): "cells and suspects",
    ("slices.py", "_expiring"): "the W before and the W now",
    ("watermark.py", "_remembered"): "chunks of 10,000 delays",
    ("watermark.py", "encoded"): "a snapshot: at most 512 different delays a chunk",
    ("watermark.py", "_minimum"): "sources",
    ("watermark.py", "_with_unread"): "sources and their partitions",
}
LOOSE_CALLS = (
    ".tolist", ".to_pylist", ".vectorize", ".frompyfunc", ".fromiter", ".apply_along_axis", ".iterrows",
    "map", "filter", "reduce",
)  # fmt: skip
WRAPPERS = ("zip", "enumerate", "range", "len", "sorted", "reversed", "max", "min", "pairwise")


def loops(tree: ast.AST, name: str = "") -> Iterator[tuple[str, int, str, bool]]:
    """Each loop or call that hands out values: its function, line and text, and whether it is over short things."""
    for node in ast.iter_child_nodes(tree):
        inside = name
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inside = f"{name}.{node.name}".lstrip(".")
        elif isinstance(node, ast.For | ast.comprehension):
            yield name, node.iter.lineno, f"for … in {ast.unparse(node.iter)}", short(node.iter)
        elif isinstance(node, ast.While):
            yield name, node.lineno, f"while {ast.unparse(node.test)}", False
        elif isinstance(node, ast.Call) and called(node) in LOOSE_CALLS:
            yield name, node.lineno, ast.unparse(node), False
        yield from loops(node, inside)


def called(node: ast.Call) -> str:
    """What is called: a method as `.name`."""
    return f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def short(node: ast.expr) -> bool:
    """Whether all that is run over is short by its nature."""
    match node:
        case ast.Constant():
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):  # written out, so as long as it is written
            return all(short(part) for part in parts if isinstance(part, ast.Starred))
        case ast.Starred(value=inner) | ast.Subscript(value=inner):
            return short(inner)
        case ast.BinOp(left=left, right=right):
            return short(left) and short(right)
        case ast.Call(func=ast.Name(id=name), args=args) if name in WRAPPERS:
            return all(short(arg) for arg in args)
        case ast.Call(func=function):
            return short(function)
        case ast.Name() | ast.Attribute():
            return ast.unparse(node).replace("()", "") in SHORT_NAMES
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_loop_is_short_or_listed(path: Path) -> None:
    found = [
        f"{path.name}:{line} in {name}: {text}"
        for name, line, text, fine in loops(ast.parse(path.read_text()))
        if not fine and (path.name, name) not in LISTED
    ]
    assert not found, "columns, not rows: put it into columns, or list it with its reason:\n" + "\n".join(found)


def test_what_is_listed_is_there() -> None:
    there = {(path.name, name) for path in FILES for name, _, _, fine in loops(ast.parse(path.read_text())) if not fine}
    assert LISTED.keys() <= there, f"no longer a loop, take it off the list: {sorted(LISTED.keys() - there)}"


@pytest.mark.parametrize(
    "code",
    ["for row in batch.to_pylist(): pass", "[t for t in times]", "{k: 1 for k in hashes.tolist()}", "times.tolist()",
     "while at < len(rows): pass", "sum(map(int, times))", "for i in range(len(times)): pass", "np.vectorize(f)(x)",
     "for a, b in zip(keys, times): pass"],
)  # fmt: skip
def test_a_loop_over_rows_is_seen(code: str) -> None:
    assert any(not fine for *_, fine in loops(ast.parse(code)))


@pytest.mark.parametrize("code", ["for column in keys: pass", "[a for a, b in zip(accumulators, held, strict=True)]"])
def test_a_loop_over_columns_is_fine(code: str) -> None:
    assert all(fine for *_, fine in loops(ast.parse(code)))
