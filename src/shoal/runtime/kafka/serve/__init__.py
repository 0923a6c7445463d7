"""The workers of a Kafka service."""
