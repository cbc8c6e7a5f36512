"""`python -m penstock.picture.figures FIGURES.toml`: draws every figure that a list names, beside the list.

A figure names its `file`, the file of `cases` (seen from the list) and the `case`; it may have a `title` and a `key`.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from penstock.errors import CaseError, PenstockError, did_you_mean
from penstock.picture.inputs import chosen, of_case
from penstock.picture.svg import svg
from penstock.testing.cases import Case, read


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a list, as text."""

    file: str
    cases: str
    case: str
    title: str = ""
    key: str | None = None


def listed(path: Path) -> list[Figure]:
    """The figures of a list."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8")).get("figure", [])
        return [_figure(path, one) for one in said]
    except (OSError, ValueError) as error:
        raise CaseError(f"{path} cannot be read", str(error), "name a file of [[figure]] tables") from None


def found(path: Path, figure: Figure) -> Case:
    """The case that a figure shows."""
    return chosen(read(path.parent / figure.cases), figure.case, figure.cases)


def drawn(path: Path, figure: Figure) -> str:
    """A figure of a list, as SVG."""
    plane = of_case(found(path, figure))
    return svg(replace(plane, title=figure.title or plane.title), key=figure.key)


def main(arguments: Sequence[str]) -> int:
    """Draw the figures of each list; gives the exit code."""
    try:
        for path in map(Path, arguments):
            for figure in listed(path):
                (path.parent / figure.file).write_text(drawn(path, figure), encoding="utf-8")
                print(path.parent / figure.file)
    except PenstockError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _figure(path: Path, said: dict[str, str]) -> Figure:
    names = [field.name for field in fields(Figure)]
    for name, value in said.items():
        if name not in names or not isinstance(value, str):
            raise CaseError(
                f"{path}: {name} = {value!r}",
                f"a figure has {', '.join(names)}, each a text",
                did_you_mean(name, names),
            )
    for name in ("file", "cases", "case"):
        if name not in said:
            raise CaseError(f"{path}: a figure without {name}", "it says what is drawn, and where", f'add {name} = "…"')
    if Path(said["file"]).name != said["file"]:
        raise CaseError(
            f"{path}: {said['file']!r} is not a file's name",
            "figures lie beside their list",
            f"write file = {Path(said['file']).name!r}",
        )
    return Figure(**said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
