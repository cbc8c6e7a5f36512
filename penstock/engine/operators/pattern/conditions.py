"""Does an event fit, beside what a partial match has taken: a condition as Python code.

Such a condition is asked for one event and one match at a time, where a column's way of computing costs more than the
sum. What has no code of its own is computed by Arrow, as a batch of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.diagnostics.user_functions import failure, user_error
from penstock.engine.expressions import evaluator
from penstock.engine.ingest.isolate_errors import failing_rows
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.protocol import BadRow
from penstock.errors import EvaluationError
from penstock.expressions.builder import Literal, Name
from penstock.expressions.inference import Typed, infer
from penstock.expressions.nodes import LONG_MAX, LONG_MIN, Node, failed
from penstock.plan.operators.match import Test
from penstock.plan.operators.measures import Read, Ref
from penstock.types.arrow import arrow_type
from penstock.types.schema import INTEGERS, Schema

# The place of the event, the registers of the match, and the columns as lists.
Code = Callable[[int, Sequence[Any], Sequence[Sequence[Any]]], Any]
# The same, with the number of the event, to the registers with that event.
Kept = Callable[[int, Sequence[Any], Sequence[Sequence[Any]], int], tuple[Any, ...]]
_CHANGES = {
    "first": "{value}",
    "last": "{value}",
    "rows": "{old} + 1",
    "first_at": "number",
    "last_at": "number",
    "events": "(*{old}, {value})",
    "count": "{old} + ({value} is not None)",
    "sum": "added({old}, {value})",
    "min": "lower({old}, {value})",
    "max": "upper({old}, {value})",
}
_COMPARE = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SIGNS = {"+": "{} + {}", "-": "{} - {}", "*": "{} * {}", "negate": "-{}", "abs": "abs({})"}


def condition_code(one: Read, schema: Schema, places: Mapping[str, int], values: Mapping[Ref, tuple[int, ...]]) -> Code:
    """The code of a condition; `places` are those of the columns, `values` those of the registers."""
    typed = infer(one.node, schema, "match")
    writer = _Writer(places, {ref.name: (ref, values[ref], schema.type_of(ref.name, "match")) for ref in one.refs})
    for ref in one.refs:
        writer.read(ref.name)
    try:
        answer = writer.written(typed)
    except NotImplementedError:
        return _by_arrow(one.node, schema, writer)
    return writer.function(answer)


def function_code(function: Callable[..., Any], events: Mapping[str, int], users: int) -> Code:
    """The code of a user's function of the event and the match so far; `users` is the place of whole events."""

    def asked(row: int, held: Sequence[Any], columns: Sequence[Sequence[Any]]) -> bool:
        match = {name: [dict(event) for event in held[slot]] for name, slot in events.items()}
        try:
            return bool(function(dict(columns[users][row]), match))
        except Exception as error:
            raise user_error(error, function, columns[users][row]) from error

    return asked


def kept_code(registers: int, changes: Mapping[int, tuple[str, int]]) -> Kept:
    """The code that changes registers, each by its kind and the column it is of, and leaves the others."""
    parts = []
    for slot in range(registers):
        kind, column = changes.get(slot, ("", 0))
        text = _CHANGES.get(kind, "{old}")
        parts.append(text.format(old=f"held[{slot}]", value=f"columns[{column}][row]"))
    space: dict[str, Any] = {"added": _added, "lower": _lower, "upper": _upper}
    exec(f"def kept(row, held, columns, number):\n    return ({', '.join(parts)},)\n", space)
    made: Kept = space["kept"]
    return made


class _Writer:
    """Lines of code, one for each part of an expression."""

    def __init__(self, places: Mapping[str, int], held: Mapping[str, tuple[Ref, tuple[int, ...], str]]) -> None:
        self.places, self.held = places, held
        self.lines: list[str] = []
        self.known: dict[str, str] = {}
        self.globals: dict[str, Any] = {
            "LOW": LONG_MIN,
            "HIGH": LONG_MAX,
            "failed": failed,
            "EvaluationError": EvaluationError,
            "remainder": _remainder,
            "least": _least,
            "greatest": _greatest,
        }

    def function(self, answer: str) -> Code:
        body = "".join(f"    {line}\n" for line in (*self.lines, f"return {answer}"))
        exec(f"def asked(row, held, columns):\n{body}", self.globals)
        made: Code = self.globals["asked"]
        return made

    def put(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: Any) -> str:
        name = f"k{len(self.globals)}"
        self.globals[name] = value
        return name

    def read(self, column: str) -> str:
        """The value of a column, or of what a column stands for."""
        if column not in self.known:
            if column in self.held:
                self.known[column] = self._register(*self.held[column])
            else:
                self.known[column] = self.put(f"columns[{self.places[column]}][row]")
        return self.known[column]

    def _register(self, ref: Ref, slots: tuple[int, ...], kind: str) -> str:
        if ref.function == "avg":
            total, count = slots
            return self.put(f"held[{total}] / held[{count}] if held[{count}] else None")
        name = self.put(f"held[{slots[0]}]")
        if ref.function == "sum" and kind in INTEGERS:
            problem = self.constant(f"overflow in {ref.name}")
            self.lines.append(f"if {name} is not None and not LOW <= {name} <= HIGH: raise EvaluationError({problem})")
        return name

    def written(self, typed: Typed) -> str:
        """The name that holds the value of a part; NotImplementedError where it has no code of its own."""
        if isinstance(typed.node, Name) and typed.op == "column":
            return self.read(typed.node.column)
        if isinstance(typed.node, Literal) and typed.op == "literal":
            return self.constant(typed.node.value)
        parts = [self.written(part) for part in typed.args]
        if typed.op in ("+", "-", "*", "/", "%", "negate", "abs"):
            return self._number(typed, parts)
        return self.put(_logic(typed.op, parts))

    def _number(self, typed: Typed, parts: list[str]) -> str:
        if typed.type.startswith("decimal"):
            raise NotImplementedError(typed.op)
        node = self.constant(typed.node)
        if typed.op in "/%":
            self.lines.append(f"if {_there(parts)} and {parts[1]} == 0: raise failed('division by zero', {node})")
        text = {"/": "{} / {}", "%": "remainder({}, {})"}.get(typed.op) or _SIGNS[typed.op]
        name = self.put(f"{text.format(*parts)} if {_there(parts)} else None")
        if typed.type in INTEGERS:
            problem = f"raise failed('overflow', {node})"
            self.lines.append(f"if {name} is not None and not LOW <= {name} <= HIGH: {problem}")
        return name


def _there(parts: Sequence[str]) -> str:
    return " and ".join(f"{part} is not None" for part in parts)


def _logic(op: str, parts: list[str]) -> str:
    """The text of an operation that cannot fail."""
    nothing = " or ".join(f"{part} is None" for part in parts)
    if op in _COMPARE:
        return f"{parts[0]} {_COMPARE[op]} {parts[1]} if {_there(parts)} else None"
    if op in ("and", "or"):
        end = op == "or"
        found = " or ".join(f"{part} is {end}" for part in parts)
        return f"{end} if {found} else None if {nothing} else {not end}"
    if op == "in":
        operand, *choices = parts
        equal = " or ".join(f"({choice} is not None and {operand} == {choice})" for choice in choices)
        unknown = " or ".join(f"{choice} is None" for choice in choices)
        return f"None if {operand} is None else True if {equal} else None if {unknown} else False"
    if op == "case":
        *pairs, last = parts
        tried = zip(pairs[::2], pairs[1::2], strict=True)
        return " ".join([*(f"{value} if {test} else" for test, value in tried), last])
    if op == "coalesce":
        return " ".join([*(f"{part} if {part} is not None else" for part in parts[:-1]), parts[-1]])
    if op in ("least", "greatest"):
        return f"{op}({', '.join(parts)}) if {_there(parts)} else None"
    # Python compares a whole number with a decimal as it is.
    plain = {"not": "not {0}", "same": "{0}", "widen": "float({0})", "to_decimal": "{0}"}
    if op in plain:
        return f"{plain[op].format(*parts)} if {_there(parts)} else None"
    if op in ("is_null", "is_not_null"):
        return f"{parts[0]} is {'not ' if op == 'is_not_null' else ''}None"
    raise NotImplementedError(op)


def _by_arrow(node: Node, schema: Schema, writer: _Writer) -> Code:
    """The condition computed as a batch of one row."""
    evaluate = evaluator(node, schema, "match")
    asked = {column.name: arrow_type(column.type) for column in schema.columns}
    names = [name for name in asked if name in writer.held or name in writer.places]
    inner = _Writer(writer.places, writer.held)
    values = inner.function(f"[{', '.join([inner.read(name) for name in names])}]")

    def computed(row: int, held: Sequence[Any], columns: Sequence[Sequence[Any]]) -> Any:
        arrays = [pa.array([value], asked[name]) for name, value in zip(names, values(row, held, columns), strict=True)]
        return evaluate(pa.RecordBatch.from_arrays(arrays, names=names))[0].as_py()

    return computed


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _least(first: Any, *rest: Any) -> Any:
    for value in rest:
        first = first if first <= value or first != first else value
    return first


def _greatest(first: Any, *rest: Any) -> Any:
    for value in rest:
        first = first if first >= value or first != first else value
    return first


def _added(old: Any, value: Any) -> Any:
    return old if value is None else value if old is None else old + value


def _lower(old: Any, value: Any) -> Any:
    return old if value is None else value if old is None or _less(value, old) else old


def _upper(old: Any, value: Any) -> Any:
    return old if value is None else value if old is None or _less(old, value) else old


def _less(left: Any, right: Any) -> bool:
    """Whether a value is below another; NaN is above every number."""
    return bool(left == left and (right != right or left < right))


Answer = tuple[np.ndarray, list[tuple[int, str]]]
Asking = Callable[[pa.RecordBatch], Answer]


def asking(tests: Sequence[Test], schema: Schema) -> tuple[Asking, ...]:
    """What each condition says of a whole batch; one that looks at a match too says nothing yet."""
    return tuple(_asking(test, schema) for test in tests)


def answered(asked: Sequence[Asking], rows: Rows, judged: np.ndarray) -> tuple[np.ndarray, tuple[BadRow, ...]]:
    """For each arrival a bit for each condition that it fits; -1 where it is not judged, or cannot be used."""
    bits = np.full(len(rows), -1, dtype=np.int64)
    if not len(judged):
        return bits, ()
    bits[judged] = 0
    batch = rows.batch if len(judged) == len(rows) else rows.batch.take(pa.array(judged))
    failing: dict[int, str] = {}
    for n, answer in enumerate(asked):
        fits, failed = answer(batch)
        bits[judged] |= fits.astype(np.int64) << n
        for row, reason in failed:
            failing.setdefault(int(judged[row]), reason)
    bits[list(failing)] = -1
    return bits, tuple(BadRow(0, row, "match", failing[row]) for row in sorted(failing))


def _asking(test: Test, schema: Schema) -> Asking:
    if not test.plain:
        return _nothing
    if test.read is not None:
        return _by_columns(evaluator(test.read.node, schema, "match"))
    return _everything if test.function is None else _by_rows(test.function)


def _nothing(batch: pa.RecordBatch) -> Answer:
    return np.zeros(batch.num_rows, dtype=bool), []


def _everything(batch: pa.RecordBatch) -> Answer:
    return np.ones(batch.num_rows, dtype=bool), []


def _by_columns(evaluate: Callable[[pa.RecordBatch], pa.Array]) -> Asking:
    def answered(batch: pa.RecordBatch) -> Answer:
        try:
            return evaluate(batch).fill_null(False).to_numpy(zero_copy_only=False), []
        except EvaluationError:
            failing = failing_rows(batch, evaluate)
        good = np.ones(batch.num_rows, dtype=bool)
        good[[row for row, _ in failing]] = False
        fits = np.zeros(batch.num_rows, dtype=bool)
        fits[good] = evaluate(batch.filter(pa.array(good))).fill_null(False).to_numpy(zero_copy_only=False)
        return fits, failing

    return answered


def _by_rows(function: Callable[..., Any]) -> Asking:
    def answered(batch: pa.RecordBatch) -> Answer:
        fits = np.zeros(batch.num_rows, dtype=bool)
        failing: list[tuple[int, str]] = []
        for n, event in enumerate(batch.to_pylist()):
            try:
                fits[n] = bool(function(event))
            except Exception as error:
                failing.append((n, failure(error, function, batch.slice(n, 1).to_pylist()[0])))
        return fits, failing

    return answered
