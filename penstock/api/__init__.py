"""What users write: streams, windows, pipelines, and how a file of theirs is loaded."""
