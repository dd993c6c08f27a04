"""The common parts of long-running processes: pages over HTTP, log lines, and those of the Kafka client."""
