"""Kafka and relays as the commands see them: sending, watching, listing."""
