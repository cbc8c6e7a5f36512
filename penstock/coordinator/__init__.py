"""The driver's protocol of a batch: collect, write the sinks, set the next clock. Never imports pyspark."""
