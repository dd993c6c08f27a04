"""Reading: rows made of what Kafka holds."""
