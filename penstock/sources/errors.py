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


def vanished(where: str) -> DataError:
    """A file that is to be read and is not there any more."""
    return DataError(
        f"{where} is not there any more, and has not been read to its end",
        "a batch that was planned is read again after a crash, and must find the same files",
        "put the file back; move files away only when a later batch has been committed",
    )


def changed(where: str) -> DataError:
    """A file whose size or time is not what it was."""
    return DataError(
        f"{where} was changed after it had been listed",
        "the rows of a file have offsets, and a replay must find them where they were",
        "put the old content back with its old time, and write what is new into a file of its own",
    )


def unknown_format(where: str) -> DataError:
    """A file of which nobody says what it is."""
    return DataError(
        f"{where} does not say by its name what format it has",
        "without format=… a file is read by its suffix: .parquet, .json, .jsonl, .ndjson or .csv",
        'write format="json", or let the names of files that are not meant begin with "_" or "."',
    )


def no_directory(path: str) -> DataError:
    """A directory that is not there."""
    return DataError(
        f"there is no directory {path}",
        "the source reads the files that appear in it",
        "make the directory, empty if need be, or mend the path",
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
