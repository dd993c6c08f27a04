"""Plain data that every step of a reconciliation shares: kinds, keys, conditions, records, events. Pure."""
