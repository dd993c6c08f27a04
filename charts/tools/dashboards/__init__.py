"""The Grafana dashboards: what they show is written here, their JSON is generated from it. Pure."""

from __future__ import annotations

import json

from charts.tools.dashboards.delay_topic import DELAY_TOPIC
from charts.tools.dashboards.fleet import FLEET
from charts.tools.dashboards.operator import OPERATOR


def dashboards() -> dict[str, str]:
    """File name and text of each."""
    return {f"{each.uid}.json": json.dumps(each.document(), indent=2) + "\n" for each in (FLEET, DELAY_TOPIC, OPERATOR)}
