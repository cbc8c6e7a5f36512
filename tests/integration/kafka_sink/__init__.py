"""The Kafka sink on a real broker."""
