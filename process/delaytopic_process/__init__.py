"""Parts of every long-running process: pages over HTTP, log lines, and those of the Kafka client."""
