"""The `delaytopic` command: run, feed, cancel and watch delayed topics on one machine."""
