"""Releases: one version everywhere, and all that is published, made and tried in a copy of the checkout."""
