"""The Kafka of a gateway's DelayTopics, as the service's ports ask for it."""
