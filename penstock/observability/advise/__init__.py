"""How long should a pipeline wait, and does it want a stream at all: tried on what its sources have, or have had."""
