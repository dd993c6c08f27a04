"""Tables that outlive a run."""
