"""The steps of a run: intake, grading, commit, and gathering for the report."""
