"""Who runs a stream: here, or workers on Kafka."""
