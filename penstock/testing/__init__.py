"""The test kit: play a pipeline batch by batch, without a JVM, and read what it shows."""

from penstock.testing.script import Script

__all__ = ["Script"]
