"""The Spark session and the steps of a run."""
