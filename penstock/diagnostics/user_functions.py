"""Where a function of the user's failed, and on what: the error, the function with its file and line, and the value.

Reasons are rows of the quarantine and come back with a batch that is played again, maybe on another machine: they hold
no address of an object and no path of a folder.
"""

from __future__ import annotations

import os
import re
import reprlib
import sysconfig
from collections.abc import Mapping
from datetime import date
from functools import partial
from types import CodeType, TracebackType
from typing import Any

from penstock.credentials import hides, shown as without_passwords
from penstock.types.validate import UserError, reason_of, shortened, without_addresses

MARK = " · in "  # what follows says where it failed and on what; edits of a file move it, so that no fingerprint has it
_WITH = " · with "
_NESTED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_NOT_THEIRS = ("penstock", "pyspark", "py4j")
_LIBRARIES = tuple(
    f"{path}{os.sep}" for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_VALUE = re.compile(r"""(?<!column )'[^']*'|(?<!column )"[^"]*"|\d+""")
Line = tuple[CodeType, int]
_LONG = 10**40
_LEAST_SECRET = 3  # letters of a value that is looked for in a message
_CUT = 199  # letters that int() and others show of a long text, behind a quote
_WRAPPED = 100  # functions around a function


def user_error(error: Exception, function: Any, value: Any) -> UserError:
    """The error of a user's function with where it failed, and on what value."""
    return error if isinstance(error, UserError) else UserError(failure(error, function, value))


def failure(error: Exception, function: Any, value: Any) -> str:
    """Why a user's function failed on a value, in one short line."""
    return error_alone(error, value) + place_and_value(error, function, value)


def place_and_value(error: BaseException, function: Any, value: Any) -> str:
    """What a reason says besides the error."""
    return f"{place(error, function)}{_WITH}{shown(value)}"


def error_alone(error: Exception, value: Any = None) -> str:
    """What an error says, without the secrets of the value."""
    return without_passwords(reason_of(error, _secrets(value)))


def place(error: BaseException, function: Any) -> str:
    """Where an error came from: the innermost line of the user's own, or else where the function begins."""
    own = _defined(function)
    found = _innermost(error, None if own is None else own[0]) or own
    return MARK + (_name(function) if found is None else _words(found))


def line_of(error: BaseException) -> str:
    """The innermost line that an error came through and that is neither Penstock's nor a library's, or nothing."""
    found = _innermost(error, None)
    return "" if found is None else _words(found)


def without_value(reason: str) -> str:
    """A reason without the value."""
    return reason.partition(_WITH)[0]


def message_of(reason: str) -> str:
    """A reason without the place and the value."""
    return reason.partition(MARK)[0]


def kind_of(reason: str) -> str:
    """What reasons have in common that differ in their values alone."""
    step, colon, text = message_of(reason).partition(": ")
    return step + colon + _VALUE.sub("…", text[max(text.find("column '"), 0) :])


def shown(value: Any) -> str:
    """A value on one short line, without secrets."""
    return shortened(without_addresses(" ".join(_VALUES.repr(value).split())))


class _Values(reprlib.Repr):
    """Values of rows: long ones are cut, and what is called a password is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxstring, self.maxother = 3, 12, 60, 60
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 6

    def repr_dict(self, value: Mapping[Any, Any], level: int) -> str:
        if level <= 0:
            return "{…}"
        items = sorted(value.items(), key=lambda item: str(item[0]))  # a row's columns may come in any order
        texts = [f"{self.repr1(name, level - 1)}: {self._of(name, item, level - 1)}" for name, item in items]
        more = ["…"] if len(texts) > self.maxdict else []
        return "{" + ", ".join([*texts[: self.maxdict], *more]) + "}"

    def repr_str(self, value: str, level: int) -> str:
        return super().repr_str(without_passwords(value), level)

    def repr_int(self, value: int, level: int) -> str:
        # Python refuses to write more than some thousand digits.
        return str(value) if -_LONG < value < _LONG else f"an integer of {value.bit_length()} bits"

    def repr_datetime(self, value: date, level: int) -> str:
        return value.isoformat()

    repr_date = repr_datetime

    def _of(self, name: Any, value: Any, level: int) -> str:
        return "***" if isinstance(name, str) and hides(name) and value is not None else self.repr1(value, level)


_VALUES = _Values()


def _secrets(value: Any) -> list[str]:
    """What a row holds that is not to be shown, the longest first."""
    if not isinstance(value, Mapping):
        return []
    hidden = [str(one) for name, one in value.items() if isinstance(name, str) and hides(name) and one is not None]
    quoted = [repr(one)[1:-1] for one in hidden]  # as a message has it that shows a text in quotes
    forms = {*hidden, *quoted, *(one[:_CUT] for one in quoted)}
    return sorted((one for one in forms if len(one) >= _LEAST_SECRET), key=lambda one: (-len(one), one))


def _innermost(error: BaseException, own: CodeType | None) -> Line | None:
    found = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code is own or _theirs(frame.f_code, frame.f_globals):
            found = frame.f_code, trace.tb_lineno
        trace = trace.tb_next
    return found


def _words(found: Line) -> str:
    code, line = found
    return f"{_called(code)} ({_file(code)}, line {line})"


def _theirs(code: CodeType, names: Mapping[str, Any]) -> bool:
    file = code.co_filename
    if str(names.get("__name__", "")).split(".")[0] in _NOT_THEIRS or file.startswith(("<frozen ", "<string>")):
        return False
    return not file.startswith(_LIBRARIES)


def _defined(function: Any) -> Line | None:
    """The code of a function, and the line where it begins; None of one that is not written in Python."""
    function = _bare(function)
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    return (code, code.co_firstlineno) if isinstance(code, CodeType) else None


def _bare(function: Any) -> Any:
    """A function without what is wrapped around it."""
    for _ in range(_WRAPPED):  # an object may have any name that it is asked for, and so be around itself
        inner = (
            getattr(function, "func", None)
            if isinstance(function, partial)
            else (getattr(function, "__wrapped__", None) or getattr(function, "__func__", None))
        )
        if not inner:
            break
        function = inner
    return function


def _called(code: CodeType) -> str:
    """What a piece of code is called, without the functions around it."""
    names = [name for name in code.co_qualname.split(".<locals>.") if name not in _NESTED]
    return "a lambda" if names and names[-1].endswith("<lambda>") else names[-1] if names else code.co_name


def _name(function: Any) -> str:
    """What a function is called that has no code."""
    function = _bare(function)
    return str(getattr(function, "__name__", type(function).__name__))


def _file(code: CodeType) -> str:
    """The name of a file; of a package's own file with the name of its folder."""
    folder, name = os.path.split(code.co_filename.replace("\\", "/"))
    return f"{os.path.basename(folder)}/{name}" if name.startswith("__") else name
