"""The numbers of a DelayTopic, looked at between two reconciliations."""
