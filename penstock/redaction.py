"""How is a location shown: without the password that it may carry."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)([^/@\s:]*):([^/\s]*)@")
_SECRET = re.compile(
    r"(?i)([?&;\s](?:[\w.-]*(?:password|passwd|pwd|secret|token|key|credential|signature))=)[^&;\s]*"
)  # fmt: skip


def shown(location: str) -> str:
    """A path or URI with `***` where a password, a secret or a token stands.

    >>> shown("s3://me:hunter2@bucket/scores?secret_key=abc&region=eu")
    's3://me:***@bucket/scores?secret_key=***&region=eu'
    """
    return _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", location))
