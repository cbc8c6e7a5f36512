"""What is observed of a run, and where it is kept."""
