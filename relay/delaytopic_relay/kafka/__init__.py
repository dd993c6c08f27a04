"""Edge: source, target and topics on Kafka."""
