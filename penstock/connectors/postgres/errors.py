"""What does an error of PostgreSQL mean: wait and try again, or stop, and what to do; never with a secret in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.connectors.postgres.copy import NulCharacter
from penstock.connectors.sink_errors import SinkError, down

if TYPE_CHECKING:
    import psycopg

# The server has gone, is not up yet, is a standby, has no connection free, or another transaction was in the way. A
# class of connection errors (08) is among them, as is whatever the client says by itself when a connection breaks.
AGAIN = {
    "57P01",
    "57P02",
    "57P03",
    "57P05",  # shut down, crashed, cannot connect now, idle for too long
    "57014",
    "25P03",
    "25P04",  # cancelled by somebody, a transaction idle or open for too long
    "40001",
    "40003",
    "40P01",
    "55P03",  # serialization, completion unknown, deadlock, lock not available
    "53200",
    "53300",
    "25006",  # out of memory, too many connections, read-only because a standby
}
# A connection that fails tells its reason in words alone, those of the server.
_FOR_GOOD = re.compile(
    r"authentication failed|no password supplied|pg_hba\.conf|(role|database) \".*\" does not exist|permission denied|"
    r"not permitted to log in|not currently accepting connections|does not support SSL|certificate|invalid ",
)
_CONSTRAINT = (
    "the table has a rule of its own that the row breaks",
    "change the rule, or write to a table that ps.postgres makes",
)
REMEDIES = {
    "42501": (
        "the user of the connection lacks a right",
        "grant it: USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on the tables, TEMPORARY on the "
        "database, and CREATE on the schema where tables are to be made",
    ),
    "53100": (
        "the batch is not written, and its ledger says so",
        "make room on the server's disk and start the pipeline again: it goes on with this batch",
    ),
    "54000": (
        "a value is longer than PostgreSQL takes; a text in a key has room for about 2,700 bytes",
        'shorten the key before the window, such as .where("length(team) < 500")',
    ),
    "22021": ("the database cannot hold a character of the text", "write to a database with the encoding UTF8"),
    "22P05": ("the database cannot hold a character of the text", "write to a database with the encoding UTF8"),
    "22008": ("times of PostgreSQL begin in 4713 BC", "leave such rows out before the window: .where(...)"),
    "42P01": ("a table was dropped while the pipeline ran", "start again: it is made anew, or restore it"),
    "23502": _CONSTRAINT,
    "23503": _CONSTRAINT,
    "23505": _CONSTRAINT,
    "23514": _CONSTRAINT,
    "23P01": _CONSTRAINT,
}


@contextmanager
def explained(place: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Raise PostgreSQL's errors as ours."""
    import psycopg

    try:
        yield
    except NulCharacter as error:
        raise nul_character(place, *error.args) from None
    except psycopg.Error as error:
        # What the client says of a connection may show how it was made; what the server says does not.
        raise meaning(error, place, secrets) from (error if error.sqlstate else None)


def meaning(error: psycopg.Error, place: str, secrets: Sequence[str] = ()) -> SinkError:
    """Our error for one of PostgreSQL's."""
    import psycopg

    state = error.sqlstate or ""
    said = shown(error, secrets)
    if state in AGAIN or state.startswith("08"):
        return down(place, said)
    if not state and isinstance(error, psycopg.OperationalError):
        return refused_connection(place, said) if _FOR_GOOD.search(said) else down(place, said)
    why, instead = REMEDIES.get(state, ("nothing of the batch is written", "mend what it says, and start again"))
    return SinkError(f"{place} says: {said}{f' ({state})' if state else ''}", why, instead)


def shown(error: psycopg.Error, secrets: Sequence[str] = ()) -> str:
    """What an error says, in one line, without secrets."""
    told = (error.diag.message_primary, error.diag.message_detail)
    said = "; ".join(part for part in told if part) or str(error)
    for secret in secrets:
        said = said.replace(secret, "***") if secret else said
    return " ".join(said.split())


def refused_connection(place: str, said: str) -> SinkError:
    """A server that is there and does not let us in."""
    return SinkError(
        f"{place} does not let the pipeline in: {said}",
        "the server answers; trying again would not change what it says",
        "correct user, password or database: "
        'ps.postgres("postgresql://user@host:5432/database", password=ps.secret("DATABASE_PASSWORD"), ...)',
    )


def nul_character(place: str, column: str, text: str) -> SinkError:
    """A text that PostgreSQL cannot hold."""
    first = repr(text if len(text) <= 60 else f"{text[:60]}…")
    return SinkError(
        f"the column {column!r} holds a text with the character U+0000, which {place} cannot hold: {first}",
        "PostgreSQL has no way to keep it, and another text in its place could be another key's",
        f"take it out before the window, such as .map(lambda row: {{**row, {column!r}: "
        f'row[{column!r}].replace("\\0", "")}})',
    )


def too_old(place: str, version: int) -> SinkError:
    """A server that lacks what the sink builds on."""
    return SinkError(
        f"{place} is PostgreSQL {version // 10_000}",
        "null is an ordinary key, and a unique index that says so (NULLS NOT DISTINCT) came with PostgreSQL 15",
        "write to a server of version 15 or newer",
    )


def other_encoding(place: str, encoding: str) -> SinkError:
    """A database that does not hold every text."""
    return SinkError(
        f"{place} has the encoding {encoding}",
        "it cannot hold every text, and a batch would stop at the first that it cannot",
        "make a database with the encoding UTF8: CREATE DATABASE answers ENCODING 'UTF8' TEMPLATE template0",
    )


def no_schema(place: str, statement: str) -> SinkError:
    """A schema that is not there."""
    return SinkError(
        f"{place} is in a schema that does not exist",
        "ps.postgres makes tables, not schemas",
        f"run: {statement}",
    )


def not_made(place: str, statements: Sequence[str]) -> SinkError:
    """Tables that are missing, and are not to be made."""
    return SinkError(
        f"{place} lacks a table or an index, and create=False says not to make any",
        "the ledger and a unique index stand beside the rows: without them nothing is written exactly once",
        "run this, or say create=True:\n    " + ";\n    ".join(statements) + ";",
    )
