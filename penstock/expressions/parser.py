"""How an expression is read from SQL text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from penstock.errors import PlanError
from penstock.expressions.nodes import (
    ADD,
    AND,
    COMPARE,
    CONCAT,
    LONG_MAX,
    LONG_MIN,
    MULTIPLY,
    NOT,
    OR,
    RESERVED,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compare,
    In,
    IsNull,
    Literal,
    Name,
    Negate,
    Node,
    Not,
    Or,
    literal,
)
from penstock.types.schema import canonical_type
from penstock.types.text import read_date, read_timestamp

_TOKEN = re.compile(
    r"""(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
      | (?P<sign><=|>=|<>|!=|==|\|\||[-+*/%=<>(),])""",
    re.VERBOSE | re.ASCII,
)
_WORD = re.compile(r"[^\W\d]\w*")
_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_INFIX = {
    "or": OR,
    "and": AND,
    "||": CONCAT,
    "+": ADD,
    "-": ADD,
    "*": MULTIPLY,
    "/": MULTIPLY,
    "%": MULTIPLY,
    "is": COMPARE,
    "in": COMPARE,
    "between": COMPARE,
    "like": COMPARE,
    "not": COMPARE,
    **dict.fromkeys(_COMPARISONS, COMPARE),
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def key(self) -> str:
        """What the grammar looks at: a sign, or a reserved word in lower case."""
        if self.kind == "word" and self.text.lower() in RESERVED:
            return self.text.lower()
        return self.text if self.kind == "sign" else ""


def parse(text: str) -> Node:
    """The expression that a piece of SQL says.

    >>> parse("points + 1 > 3 and team is not null").left.op
    '>'
    """
    parser = _Parser(text)
    try:
        node = parser.expression(OR)
    except RecursionError:
        raise PlanError(
            "the expression is nested too deeply",
            "each level of parentheses takes a level of the reader's stack",
            "split it over several columns",
        ) from None
    if parser.next.kind != "end":
        raise parser.refused("an operator or the end")
    return node


class _Parser:
    """A reader with one token of foresight that climbs the binding powers of `penstock.expressions.nodes`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.place = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def take(self) -> _Token:
        token = self.next
        self.place += token.kind != "end"
        return token

    def takes(self, *keys: str) -> bool:
        """Whether these signs or words come next; if so they are taken."""
        if tuple(token.key for token in self.tokens[self.place : self.place + len(keys)]) != keys:
            return False
        self.place += len(keys)
        return True

    def must(self, key: str) -> None:
        if not self.takes(key):
            raise self.refused(f"{key!r}")

    def refused(self, wanted: str, token: _Token | None = None, hint: str = "") -> PlanError:
        token = token or self.next
        found = "it ends" if token.kind == "end" else f"there is {token.text!r}"
        return _refused(self.text, token.at, f"{wanted} was expected where {found}", hint)

    def expression(self, power: int) -> Node:
        if power <= NOT and self.takes("not"):
            left: Node = Not(self.expression(NOT))
        else:
            left = self.operand()
        compared = False
        while (binds := _INFIX.get(self.next.key, 0)) >= power:
            if binds == COMPARE:
                if compared:
                    raise self.refused("and, or or the end", hint="put one of the comparisons in parentheses")
                left, compared = self.comparison(left), True
            else:
                left = self.binary(left, self.take().key, binds)
        return left

    def binary(self, left: Node, op: str, power: int) -> Node:
        right = self.expression(power + 1)
        match op:
            case "or":
                return Or(left, right)
            case "and":
                return And(left, right)
            case "||":
                return Call("concat", (left, right))
        return Arithmetic(op, left, right)

    def comparison(self, left: Node) -> Node:
        if self.next.key in _COMPARISONS:
            return Compare(_COMPARISONS[self.take().key], left, self.expression(CONCAT))
        if self.takes("is", "not", "null"):
            return IsNull(left, negated=True)
        if self.takes("is"):
            self.must("null")
            return IsNull(left)
        negated = self.takes("not")
        if self.takes("in"):
            self.must("(")
            return In(left, self.several(")"), negated)
        if self.takes("like"):
            node: Node = Call("like", (left, self.expression(CONCAT)))
        else:
            if not self.takes("between"):
                raise self.refused("in, like or between")
            low = self.expression(CONCAT)
            self.must("and")
            node = And(Compare(">=", left, low), Compare("<=", left, self.expression(CONCAT)))
        return Not(node) if negated else node

    def several(self, end: str) -> tuple[Node, ...]:
        """Expressions with commas between them, and the sign that ends them."""
        found = [self.expression(OR)]
        while self.takes(","):
            found.append(self.expression(OR))
        self.must(end)
        return tuple(found)

    def operand(self) -> Node:
        token = self.take()
        if token.key == "-":
            return self.number(self.take(), "-") if self.next.kind == "number" else Negate(self.operand())
        if token.key == "(":
            inner = self.expression(OR)
            self.must(")")
            return inner
        if token.key in ("null", "true", "false"):
            return literal({"null": None, "true": True, "false": False}[token.key])
        if token.key == "case":
            return self.case()
        if token.key == "cast":
            return self.cast()
        if token.kind == "number":
            return self.number(token, "")
        if token.kind == "text":
            return literal(_inside(token))
        if token.kind == "quoted":
            return Name(_inside(token))
        if token.kind == "word" and not token.key:
            return self.word(token)
        hint = "put a column of that name in double quotes" if token.key in RESERVED else ""
        raise self.refused("a value", token, hint)

    def word(self, token: _Token) -> Node:
        if self.next.kind == "text" and token.text.lower() in _PREFIXED:
            return self.prefixed(token.text.lower(), self.take())
        if not self.takes("("):
            return Name(token.text)
        return Call(token.text.lower(), () if self.takes(")") else self.several(")"))

    def number(self, token: _Token, sign: str) -> Node:
        if not token.text.isdigit():
            value = float(sign + token.text)
            if value in (float("inf"), float("-inf")):
                raise _refused(self.text, token.at, f"{token.text} is larger than any double", "")
            return literal(value)
        if len(token.text) > 40 or not LONG_MIN <= int(sign + token.text) <= LONG_MAX:
            hint = "write it as a double, with a point, or as in decimal '12345678901234567890'"
            raise _refused(self.text, token.at, f"{sign}{token.text} does not fit in 64 bits", hint)
        return literal(int(sign + token.text))

    def prefixed(self, kind: str, token: _Token) -> Node:
        """A constant whose type is written before it, as in `date '2026-01-01'`."""
        read, sample = _PREFIXED[kind]
        try:
            return read(_inside(token))
        except (ValueError, InvalidOperation):
            raise _refused(self.text, token.at, f"{token.text} is not a {kind}", f"write it as in {sample}") from None

    def case(self) -> Node:
        subject = None if self.next.key == "when" else self.expression(OR)
        branches = []
        while self.takes("when"):
            test = self.expression(OR)
            self.must("then")
            branches.append((test if subject is None else Compare("=", subject, test), self.expression(OR)))
        if not branches:
            raise self.refused("'when'")
        otherwise = self.expression(OR) if self.takes("else") else None
        self.must("end")
        return Case(tuple(branches), otherwise)

    def cast(self) -> Node:
        self.must("(")
        operand = self.expression(OR)
        self.must("as")
        words, depth = [], 0
        while self.next.kind != "end" and (depth or self.next.key != ")"):
            depth += (self.next.key == "(") - (self.next.key == ")")
            words.append(self.take().text)
        self.must(")")
        return Cast(operand, canonical_type("".join(words)))


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _WORD.match(text, at) or _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        found.append(_Token(match.lastgroup or "word", match[0], at))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


def _inside(token: _Token) -> str:
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)


def _unreadable(text: str, at: int) -> PlanError:
    if text[at] in "'\"`":
        why = f"the quote {text[at]} is not closed or holds nothing"
        return _refused(text, at, why, f"close it with another {text[at]}")
    if text[at].isdigit():
        return _refused(text, at, "a word cannot begin with a digit", 'put such a column in double quotes, as in "2nd"')
    return _refused(text, at, f"{text[at]!r} means nothing here", 'put an unusual column in double quotes, as in "a.b"')


def _refused(text: str, at: int, why: str, hint: str) -> PlanError:
    mark = f"{text[:at]}>>>{text[at:]}" if text.strip() else "nothing at all"
    return PlanError(
        f"the expression {text!r} cannot be read at position {at + 1}",
        f"{why}: {mark}",
        hint or "write it as in SQL: points + 1 > 3 and team is not null",
    )


def _decimal(text: str) -> Node:
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        raise ValueError(text)
    return literal(Decimal(text))


_PREFIXED: dict[str, tuple[Callable[[str], Node], str]] = {
    "timestamp": (lambda text: Literal(read_timestamp(text), "timestamp"), "timestamp '2026-01-01 12:00:00'"),
    "date": (lambda text: Literal(read_date(text), "date"), "date '2026-01-01'"),
    "decimal": (_decimal, "decimal '1.50'"),
    "x": (lambda text: Literal(bytes.fromhex(text), "binary"), "x'00ff'"),
}
