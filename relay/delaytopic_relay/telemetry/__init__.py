"""The telemetry of a relay: status, metrics, logs, and the pages that serve them."""
