"""What every process of ours that runs for long has: pages over HTTP, log lines, and those of the Kafka client."""
