"""The processes of a run: the relays under measurement, and those that produce and look on."""
