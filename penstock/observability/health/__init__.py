"""What needs attention, in words with the cause."""
