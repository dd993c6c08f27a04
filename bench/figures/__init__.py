"""The figures of a run: order statistics, goals, results and tables. Pure."""
