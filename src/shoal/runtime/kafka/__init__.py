"""Role views as a service on Apache Kafka: provisioning, and the worker that fills the views exactly once."""
