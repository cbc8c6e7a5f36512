"""Bytes between tasks and shards, and which shard a key goes to."""
