"""Step 2 of a reconciliation: what is to be done. Pure."""
