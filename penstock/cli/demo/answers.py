"""What the demo's SQLite file says: the answers of the last windows while it is written, and their story afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUERY = """SELECT window_start, team, points, plays, pane_timing
FROM team_scores ORDER BY window_start DESC, team LIMIT 10"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The current answer of a team in a window: which pane it is, and what it says."""

    start: str
    team: str
    points: int
    timing: str
    index: int

    @property
    def clock(self) -> str:
        """When the window begins, as a time of day."""
        return self.start[11:19]


@dataclass(frozen=True, slots=True)
class Correction:
    """An answer that a late row changed: what it was on time, and what it became."""

    team: str
    start: str
    before: int
    after: int
    times: int


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to the windows of all teams."""

    windows: int
    early: int
    early_panes: int
    complete: int
    corrected: int
    largest: Correction | None


def current(database: Path, windows: int) -> list[Answer]:
    """The answers of the last windows, the oldest first; none while there is no table."""
    newest = f"SELECT DISTINCT window_start FROM team_scores ORDER BY 1 DESC LIMIT {windows}"
    found = asked(
        database,
        f"SELECT window_start, team, points, pane_timing, pane_index FROM team_scores "
        f"WHERE window_start IN ({newest}) ORDER BY 1, 2",
    )
    return [Answer(*row) for row in found]


def story(database: Path) -> Story:
    """Count what the history of all panes says."""
    ((windows, early, panes, complete, corrected),) = asked(
        database,
        """
        SELECT count(*), sum(early > 0), sum(early), sum(on_time > 0), sum(late > 0) FROM (
            SELECT sum(pane_timing = 'early') early, sum(pane_timing = 'on_time') on_time,
                   sum(pane_timing = 'late') late FROM team_scores_history GROUP BY team, window_start)""",
    )
    largest = asked(
        database,
        """
        SELECT team, window_start, max(points) FILTER (WHERE pane_timing = 'on_time') before, max(points) after,
               sum(pane_timing = 'late') times FROM team_scores_history GROUP BY team, window_start
        HAVING times > 0 AND before IS NOT NULL ORDER BY after - before DESC LIMIT 1""",
    )
    return Story(
        windows, early or 0, panes or 0, complete or 0, corrected or 0, Correction(*largest[0]) if largest else None
    )


def asked(database: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none where there is no such file or table yet."""
    with _opened(database) as connection:
        try:
            return connection.execute(query).fetchall() if connection else []
        except sqlite3.OperationalError:
            return []


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection | None]:
    if not database.exists():
        yield None
        return
    with closing(sqlite3.connect(f"file:{database.absolute()}?mode=ro", uri=True, timeout=2)) as connection:
        yield connection
