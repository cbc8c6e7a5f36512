"""Windows over columns: assignment, merges, triggers due, panes, lateness."""
