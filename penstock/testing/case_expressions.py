"""What does `at_watermark(late=count(1))` in a file stand for: makers read as text, and nothing else of Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import penstock
from penstock.errors import CaseError, did_you_mean
from penstock.model.aggregates import Aggregate
from penstock.model.triggers import Trigger
from penstock.model.watermarks import Watermark
from penstock.model.windows import Custom, Window, WindowRule, custom
from penstock.types.timestamps import MAX_TIME

Make = Callable[..., Any]


def validity() -> Custom:
    """The one custom window that a file can name: from an event to the next event of its key."""
    return custom(_from_event, _until_next)


def _from_event(t: int) -> list[tuple[int, int]]:
    return [(t, MAX_TIME)]


def _until_next(windows: list[Window]) -> dict[Window, tuple[int, int]]:
    starts = sorted({window.start for window in windows})
    ends = dict(zip(starts, [*starts[1:], MAX_TIME], strict=True))
    return {window: (window.start, ends[window.start]) for window in windows}


def _public(*names: str) -> dict[str, Make]:
    return {name: getattr(penstock, name) for name in names}


MAKERS: dict[str, tuple[type, dict[str, Make]]] = {
    "window": (
        WindowRule,
        {**_public("tumbling", "sliding", "calendar", "session", "global_window", "event_pairs"), "validity": validity},
    ),
    "trigger": (
        Trigger,
        _public("at_watermark", "count", "after", "every", "when", "at_expiry", "never", "repeat"),
    ),
    "watermark": (
        Watermark,
        _public("bounded", "ascending", "percentile", "from_column", "punctuated", "by_hand"),
    ),
    "aggregate": (
        Aggregate,
        _public(
            "rows",
            "count",
            "sum",
            "min",
            "max",
            "mean",
            "variance",
            "first",
            "last",
            "arg_min",
            "arg_max",
            "top_k",
            "collect",
            "distinct",
            "approx_distinct",
            "approx_quantile",
        ),
    ),
}
METHODS = ("then", "until")


def make(text: str, what: str) -> Any:
    """The window, trigger, watermark or aggregate that a text stands for.

    >>> str(make('tumbling("10 minutes")', "window"))
    'tumbling windows of 10 minutes'
    """
    kind, makers = MAKERS[what]
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise CaseError(
            f"the {what} {text!r} cannot be read: {error.args[0]}",
            f"a {what} is written as the call that makes it",
            f"write one of: {', '.join(f'{name}(…)' for name in makers)}",
        ) from None
    made = _Reader(text, what, makers).value(tree.body)
    if not isinstance(made, kind):
        raise CaseError(
            f"{text!r} is not {_a(what)}",
            f"{_a(what)} is made by one of: {', '.join(makers)}",
            f"write {what} = '{next(iter(makers))}(…)'",
        )
    return made


class _Reader:
    """Walks one text's syntax tree, and knows these makers and no other name."""

    def __init__(self, text: str, what: str, makers: dict[str, Make]) -> None:
        self.text, self.what, self.makers = text, what, makers

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | int() | float() | None):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.List(elts=elements):
                return [self.value(element) for element in elements]
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() as sign, right=right):
                first, second = self.trigger(left), self.trigger(right)
                return first | second if isinstance(sign, ast.BitOr) else first & second
            case ast.Call(func=ast.Attribute(value=ast.Name(id="ps"), attr=name) | ast.Name(id=name)):
                return self.call(self.maker(name), name, node)
            case ast.Call(func=ast.Attribute(value=first_part, attr=name)):
                if name not in METHODS:
                    raise self.error(f"there is no .{name}(…)", did_you_mean(name, METHODS))
                return self.call(getattr(self.trigger(first_part), name), name, node)
        raise self.error(f"{ast.unparse(node)!r} is not a maker", "write a call, such as count(1), or a constant")

    def trigger(self, node: ast.expr) -> Trigger:
        made = self.value(node)
        if isinstance(made, Trigger):
            return made
        raise self.error(f"{ast.unparse(node)!r} is not a trigger", "write one with a call, such as count(1)")

    def maker(self, name: str) -> Make:
        if name in self.makers:
            return self.makers[name]
        raise self.error(f"there is no {self.what} {name!r}", did_you_mean(name, self.makers))

    def call(self, function: Make, name: str, node: ast.Call) -> Any:
        starred = any(isinstance(one, ast.Starred) for one in node.args) or any(not one.arg for one in node.keywords)
        if starred:
            raise self.error(f"{name} is given * or **", "write each argument out")
        arguments = [self.value(one) for one in node.args]
        named = {str(one.arg): self.value(one.value) for one in node.keywords}
        try:
            return function(*arguments, **named)
        except TypeError as error:
            raise self.error(f"{name}: {error}", f"see the signature of ps.{name}") from None

    def error(self, what: str, instead: str) -> CaseError:
        return CaseError(what, f"it stands in the {self.what} {self.text!r}", instead)


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"
