"""From verdicts to objectives, pages and metrics."""
