"""The backlog in a Redis sorted set."""
