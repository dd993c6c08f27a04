"""Edge: Kafka's topics, groups and offsets."""
