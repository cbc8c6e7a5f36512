"""What both engines share while they run."""
