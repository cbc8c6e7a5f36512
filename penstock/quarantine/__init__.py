"""Rows that could not be used: read, mended, put back."""
