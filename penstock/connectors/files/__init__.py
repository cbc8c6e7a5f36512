"""Files as source and as sink."""
