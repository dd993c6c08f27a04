"""Edge: the API server."""
