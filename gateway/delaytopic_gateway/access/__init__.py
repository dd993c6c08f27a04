"""Callers of a gateway: who may do what, and how much of it at once."""
