"""Edge: reading a relay's pages on this machine."""

from __future__ import annotations

import math
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from delaytopic_api import RelayStatus

LATENESS = "delaytopic_lateness_seconds"
_TIMEOUT_SECONDS = 1.0

Buckets = dict[float, int]
"""Cumulative counts of a lateness histogram by upper edge in milliseconds; the last edge is infinite."""


def read_status(port: int) -> RelayStatus | None:
    """The relay's status; None when it does not answer, or not with a status."""
    page = _get(port, "/status")
    try:
        return RelayStatus.model_validate_json(page) if page is not None else None
    except ValueError:
        return None


def read_lateness(port: int) -> Buckets:
    """The relay's lateness histogram since its start; empty when it does not answer."""
    page = _get(port, "/metrics")
    buckets: Buckets = {}
    for family in text_string_to_metric_families(page.decode()) if page is not None else ():
        for sample in family.samples:
            if sample.name == f"{LATENESS}_bucket":
                edge_s = float(sample.labels["le"])
                buckets[edge_s if math.isinf(edge_s) else round(edge_s * 1000, 3)] = int(sample.value)
    return buckets


def _get(port: int, path: str) -> bytes | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, OSError):
        return None
