"""What Kafka and databases share: what a role sees, whether it would see more, users and their passwords."""
