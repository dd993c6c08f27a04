"""REST over what waits: the gateway's own, and that of schedulers."""
