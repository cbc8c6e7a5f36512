"""Servers for tests: Kafka, PostgreSQL, a proxy between."""
