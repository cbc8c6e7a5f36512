"""How rows are put into tables and files: what needs pyarrow, imported when a sink is opened."""
