"""From decoded rows to partial windows: row steps, event time, windows, pre-aggregation."""
