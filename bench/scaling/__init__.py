"""`make simulate-scaling`: rules that decide how many relays run, against the same three hours of load."""
