"""The state of one partition, without any backlog: commands in due order, ids, progress, terms."""
