"""How rows become Arrow, in the worker that reads: the part of the sources that needs pyarrow and numpy."""
