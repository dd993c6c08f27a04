"""What is generated in charts/ and gitops/, and from what: `python -m charts.tools` writes it."""
