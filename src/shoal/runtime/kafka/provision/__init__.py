"""Topics, users and rights of a Kafka service."""
