"""What a relay tells of itself: status, metrics, logs."""
