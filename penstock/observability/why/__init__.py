"""Why is a pane as it is, and why was an event late: batches played again as they were, with their own clocks."""
