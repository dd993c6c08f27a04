"""Step 1 of a reconciliation: what is there."""
