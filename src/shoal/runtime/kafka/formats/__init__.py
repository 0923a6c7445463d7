"""How records are written on Kafka."""
