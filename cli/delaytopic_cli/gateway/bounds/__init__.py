"""What the callers of a gateway take of it at once: memory, threads, connections, and of all that each a part."""
