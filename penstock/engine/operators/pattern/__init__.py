"""Patterns over columns: an automaton for each key."""
