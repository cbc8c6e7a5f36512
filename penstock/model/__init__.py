"""The vocabulary of the Dataflow model, as frozen values."""
