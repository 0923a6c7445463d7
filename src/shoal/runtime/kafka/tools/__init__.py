"""The commands around a Kafka stream."""
