"""What runs the operator: watches, cache, queue, workers, election, health, metrics, events."""
