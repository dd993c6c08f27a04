"""Records on their way out: where they may go, how large they may be, what is refused."""
