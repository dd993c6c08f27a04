"""A logger for Kafka clients that says nothing: what matters is raised."""

from __future__ import annotations

import logging

QUIET = logging.getLogger("bench.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
