"""What went wrong, why, and the line to write instead: every error Penstock raises has these three parts."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class PenstockError(Exception):
    """An error in three parts: what is wrong, why it is wrong, and what to write instead."""

    def __init__(self, what: str, why: str, instead: str) -> None:
        super().__init__(what, why, instead)
        self.what = what
        self.why = why
        self.instead = instead

    def __str__(self) -> str:
        return f"{self.what}\n  why:     {self.why}\n  instead: {self.instead}"


class PlanError(PenstockError):
    """The pipeline cannot be right, and is refused before anything runs."""


class DataError(PenstockError):
    """The data cannot be computed without a wrong number, and the run stops."""


class TooManyBadRows(PenstockError):
    """More rows were quarantined than `max_bad` allows."""


class CaseError(PenstockError):
    """A case file or a test script says something that cannot be played."""


class EvaluationError(ValueError):
    """A row has no value for an expression: an overflow, a division by zero, or a cast that fails."""


def did_you_mean(word: str, known: Iterable[str], example: str | None = None) -> str:
    """A hint that names the nearest known word, or else the example, or lists what there is."""
    choices = sorted(set(known))
    near = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    if example is not None:
        return example
    return "known: " + ", ".join(choices) if choices else "there is none to choose from"


def path_of(path: object, where: str) -> str:
    """A path as text; refuses what is none."""
    if isinstance(path, (str, os.PathLike)):
        return os.fsdecode(path)
    raise PlanError(
        f"{where} was given {path!r}, which is not a path",
        "a path is text or a pathlib.Path",
        'write the path in quotes, such as "answers/"',
    )


def not_a_mapping(settings: object, example: str) -> PlanError:
    """The refusal of settings that are not names and values."""
    return PlanError(
        f"settings is {type(settings).__name__}, which has no names",
        "settings are names and values, as the client of Kafka knows them",
        f"write settings={{{example}}}",
    )


def not_a_column(value: object, where: str, example: str) -> PlanError:
    """The refusal of what is not the name of a column; `ps.col("at")` is answered with the plain name."""
    name = getattr(getattr(value, "node", value), "column", None)
    return PlanError(
        f"{where} was given {value!r}, which is not the name of a column",
        "columns are named by text; an expression belongs into with_columns",
        f"write the plain name in quotes: {name!r}"
        if isinstance(name, str)
        else f"write the name in quotes, such as {example!r}",
    )


def unknown_column(name: str, known: Iterable[str], where: str) -> PlanError:
    """The refusal of a column that the stream does not have."""
    columns = list(known)
    return PlanError(
        f"{where} names the column {name!r}, which the stream does not have",
        f"its columns are: {', '.join(columns) or 'none'}",
        did_you_mean(name, columns),
    )
