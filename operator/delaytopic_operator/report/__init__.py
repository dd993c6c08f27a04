"""Step 4 of a reconciliation: conditions, status, events, metrics."""
