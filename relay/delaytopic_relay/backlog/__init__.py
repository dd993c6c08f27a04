"""Schedules that wait outside memory: the store's protocol, segments, and a room for each backend."""
