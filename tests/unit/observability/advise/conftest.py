"""Few batches: one takes the same time whether it has many events or few, as here."""

from __future__ import annotations

import pytest

from penstock.observability.advise import inputs


@pytest.fixture(autouse=True)
def few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BATCHES", 50)
