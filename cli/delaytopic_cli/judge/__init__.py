"""Comparing what was delivered with what was sent."""
