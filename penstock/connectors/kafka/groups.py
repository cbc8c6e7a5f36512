"""How far a pipeline is, in Kafka's own words: offsets committed to a consumer group, for others to look at."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.connectors.kafka.client import Cluster, admin
from penstock.connectors.kafka.metadata import parted

SECONDS = 10.0


def commit(cluster: Cluster, group: str, offsets: Mapping[str, int]) -> None:
    """Commit the next offset of each partition to a group."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    client, _ = admin(cluster)
    places = [TopicPartition(*parted(partition), offset) for partition, offset in offsets.items()]
    asked = client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)], request_timeout=SECONDS)
    for future in asked.values():
        future.result()
