"""From Kafka to rows."""
