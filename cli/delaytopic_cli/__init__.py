"""The `delaytopic` command and `kubectl delaytopic`."""
