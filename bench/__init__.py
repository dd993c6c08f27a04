"""The benchmark: what a relay costs, against a loop that only copies, on the machine it runs on."""
