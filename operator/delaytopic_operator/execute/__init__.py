"""Step 3 of a reconciliation: doing it."""
