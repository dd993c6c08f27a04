"""The operator's own configuration."""
