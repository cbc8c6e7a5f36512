"""How Kafka is spoken to: what a cluster holds, how far a batch reads, and the consumers that stay between batches."""
