"""Aggregates over columns."""
