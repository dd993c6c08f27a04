"""The Spark session, and the Java under it."""
