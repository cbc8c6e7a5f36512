"""The command `penstock`: from a file with a pipeline to a run that people can watch."""
