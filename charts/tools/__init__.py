"""The generated files of charts/ and gitops/ and their sources: `python -m charts.tools` writes them."""
