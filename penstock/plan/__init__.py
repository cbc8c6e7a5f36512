"""The logical plan: stages, their graph, and what may not be."""
