"""The demonstration: a file to run, and what it shows meanwhile."""
