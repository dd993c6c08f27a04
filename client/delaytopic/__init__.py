"""Delayed delivery for Apache Kafka, as producers use it: see `delaytopic.client`."""
