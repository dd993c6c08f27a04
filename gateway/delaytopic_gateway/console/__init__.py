"""The console: pages for people over what waits."""
