"""What a row is made of: schemas, values, times, and their Arrow and Spark forms."""
