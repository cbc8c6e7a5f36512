"""What the engine remembers: runs, parts, their bytes, and the cache of them."""
