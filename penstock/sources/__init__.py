"""Where rows come from: logs that can be read again and give the same rows. Nothing here knows Spark."""
