"""The service of a gateway, over ports: the DelayTopics that it serves, their state, and the records that it writes."""
