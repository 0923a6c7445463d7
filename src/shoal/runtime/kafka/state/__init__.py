"""The workers' state on Kafka."""
