"""Launchers of a real Apache Kafka and a real Redis, from ordinary Python packages."""
