"""The backlog in Kafka bucket topics."""
