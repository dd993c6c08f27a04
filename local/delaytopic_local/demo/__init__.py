"""`make demo`: deliver records through real servers, crash the relay on the way, and audit the result from outside."""
