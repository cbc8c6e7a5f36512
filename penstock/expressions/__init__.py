"""Row expressions: nodes, the builder, the SQL text, the types."""
