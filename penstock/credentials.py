"""A password or token that never shows itself: not in a log, an error, a plan or a page."""

from __future__ import annotations

import os
import re

from penstock.errors import PlanError

_WORDS = (
    "password",
    "passwd",
    "api_key",
    "api.key",
    "apikey",
    "secret",
    "token",
    "key.pem",
    "private.key",
    "oauthbearer.config",
    "jaas",
    "credential",
)


class Secret:
    """Text that prints as `***`; `reveal` gives it to whoever must send it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


def secret(name: str) -> Secret:
    """The secret that the environment variable of that name holds."""
    if not isinstance(name, str):
        raise PlanError(
            f"ps.secret was given {type(name).__name__}, which is not the name of an environment variable",
            "a secret is read from the environment, so that it stands in no file",
            'write the name in quotes: ps.secret("KAFKA_PASSWORD")',
        )
    value = os.environ.get(name)
    if value is None:
        raise PlanError(
            f"the environment variable {name} is not set",
            "a secret is read from the environment, so that it stands in no file",
            f"set it before the start, such as: {name}=... penstock run pipeline.py",
        )
    return Secret(value)


def hides(setting: str) -> bool:
    """Whether the value of a client's setting is a secret, by the setting's name."""
    return any(word in setting.lower() for word in _WORDS)


def revealed(value: str | Secret) -> str:
    """Plain text as it is, a secret's own."""
    return value.reveal() if isinstance(value, Secret) else value


_USER = re.compile(r"(?<=://)([^/@\s:]*):([^/\s]*)@")
_SECRET = re.compile(r"(?i)([?&;\s](?:[\w.-]*(?:password|passwd|pwd|secret|token|key|credential|signature))=)[^&;\s]*")


def shown(location: str) -> str:
    """A path or URI with `***` where a password, a secret or a token stands.

    >>> shown("s3://me:hunter2@bucket/scores?secret_key=abc&region=eu")
    's3://me:***@bucket/scores?secret_key=***&region=eu'
    """
    return _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", location))
