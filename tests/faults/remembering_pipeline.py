"""The pipeline with a stage of every kind, as a file that `penstock prove` is given."""

from __future__ import annotations

from tests.spark.remembering import pipeline as made

pipeline = made(".", events=4_000)
