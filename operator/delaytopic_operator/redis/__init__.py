"""Edge: what Redis is asked before relays use it."""
