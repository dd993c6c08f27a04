"""The relay: reads a source topic and delivers each record to its target at its own time, exactly once."""
