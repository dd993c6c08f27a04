"""Bounds of a gateway's memory, threads and connections, for all callers together and for each team."""
