"""The verifier compares what was delivered with what was sent. It shares no code with the relay."""
