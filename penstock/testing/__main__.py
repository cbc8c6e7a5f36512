"""`python -m penstock.testing play FILE…`: do the engines do what the case files say?"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from penstock.errors import CaseError
from penstock.testing.case_player import Played, pipeline, play
from penstock.testing.cases import Case, find, read
from penstock.testing.engines import ENGINES, start

PASSED, FAILED, UNREADABLE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; gives its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        cases = [case for path in find(asked.files) for case in read(path)]
        engines = _engines(asked.engine)
    except CaseError as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    played = []
    for case in cases:
        for engine in engines:
            played.append(play(case, engine))
            _tell(played[-1], asked.verbose)
    for suite in dict.fromkeys(case.suite for case in cases):
        for engine in engines:
            _sum_up(suite, engine, [one for one in played if (one.case.suite, one.engine) == (suite, engine)])
    return FAILED if any(one.failure for one in played) else PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.testing",
        description="Plays case files on the engines; on Spark only when it is asked for by name.",
        epilog="exit code: 0 all passed, 1 a case failed, 2 a file cannot be read or an engine is not there",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("play", help="play case files", description="Plays case files and tells what differs.")
    one.add_argument("files", nargs="+", metavar="FILE", help="a case file (.toml, .json), or a directory of them")
    one.add_argument(
        "--engine", choices=[*ENGINES, "both"], help="who plays; default: both, or the one that is installed"
    )
    one.add_argument("-v", "--verbose", action="store_true", help="list every case, not only those that failed")
    return parser


def _engines(asked: str | None) -> list[str]:
    """The engines to play on; one that is asked for by name must be there."""
    wanted = [name for name in ENGINES if name != "spark"] if asked in (None, "both") else [str(asked)]
    plan = pipeline(Case("", "", {"window": 'tumbling("1 minute")', "aggregate": {"n": "rows()"}})).plan
    there = []
    for engine in wanted:
        try:
            start(plan, engine)
            there.append(engine)
        except (ImportError, AttributeError) as error:
            if asked is not None:
                raise CaseError(
                    f"the engine {engine} is not there: {error}",
                    "the columnar engine needs pyarrow, and Spark needs PySpark",
                    "write pip install 'penstock[engine]' or 'penstock[spark]', or --engine reference",
                ) from None
            print(f"the engine {engine} is not there and does not play: {error}", file=sys.stderr)
    return there


def _tell(one: Played, verbose: bool) -> None:
    name = f"{one.case.suite}: {one.case.name} ({one.engine})"
    if one.failure is not None:
        print(f"FAILED {name}: {' '.join(one.failure.split())}")
    elif verbose:
        print(f"passed {name}")


def _sum_up(suite: str, engine: str, played: Sequence[Played]) -> None:
    passed = sum(1 for one in played if one.failure is None)
    named = Counter(name for one in played for name in one.case.deviations)
    print(f"{suite} ({engine}): {len(played)} cases, {passed} passed, {named.total()} named deviations")
    for name, times in named.items():
        print(f"  {times} × {name}")


if __name__ == "__main__":
    sys.exit(main())
