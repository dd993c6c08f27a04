"""The runtime of the operator: watches, cache, queue, workers, election, health, metrics, events."""
