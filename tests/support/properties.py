"""Settings of property tests: no deadline, since the machine may be busy with other tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
