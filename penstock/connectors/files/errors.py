"""What can go wrong with a source that is read: each in three parts, naming the file."""

from __future__ import annotations

from penstock.errors import DataError


def not_of_its_format(where: str, kind: str, error: object) -> DataError:
    """A file that is not what its name or the pipeline says."""
    first = str(error).strip().splitlines()
    return DataError(
        f"{where} cannot be read as {kind}: {first[0] if first else error}",
        "a file is taken as soon as it is there, and must be whole by then",
        "write files under a name that begins with '_' and rename them when they are whole; move this one away",
    )


def unknown_format(where: str) -> DataError:
    """A file of which nobody says what it is."""
    return DataError(
        f"{where} does not say by its name what format it has",
        "without format=… a file is read by its suffix: .parquet, .json, .jsonl, .ndjson or .csv",
        'write format="json", or let the names of files that are not meant begin with "_" or "."',
    )


def no_table(path: str, why: str) -> DataError:
    """A file that is to be read as a table and cannot be looked at."""
    return DataError(
        f"the file {path} cannot be read: {why}",
        "a table is read whole from it",
        "put the file in its place, or mend the path",
    )


def cannot_tell(names: list[str]) -> DataError:
    """Old files came and went at the same time."""
    some = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return DataError(
        f"nobody can tell whether these files have been read: {some}",
        "they are older than what was read last and came into the directory lately, while others were removed",
        "touch those that are new, so that they are the newest, and move away those that have been read",
    )


def not_adjacent(since: int, upto: int) -> DataError:
    """Two positions of which the second does not follow the first."""
    return DataError(
        f"the positions are not of successive batches: one ends at file {since}, the next begins at file {upto}",
        "a position holds the files of its own batch alone",
        "replay batch by batch, each from the position of the one before",
    )
