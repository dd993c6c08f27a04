"""A DelayTopic of three lines, applied to a real cluster: everything that it needs is made, and it delivers."""

from __future__ import annotations

import pytest
from tests.support.platform import Platform

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_three_lines_become_topics_and_relays(platform: Platform) -> None:
    platform.start()

    platform.apply_topic("reminders")

    platform.await_condition("reminders", "Ready", seconds=60)
