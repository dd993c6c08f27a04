"""Where the Kafka client's own lines go: nowhere. What matters of them comes back as an error, once."""

from __future__ import annotations

import logging

QUIET = logging.getLogger("delaytopic_slo.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
