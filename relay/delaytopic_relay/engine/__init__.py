"""The loop of a relay: read, deliver, commit, recover."""
