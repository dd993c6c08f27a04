"""The cases: each runs one thing once, and returns its figures."""
