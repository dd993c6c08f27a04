"""The conformance tables of all dialects that other services' clients speak."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.relay.dialects import (
    black_box,
    cesium,
    karafka,
    kaspr,
    redelivery,
    scheduler,
    scheduler_json,
    timebridge,
)
from tests.support.relay.dialects.table import Table

TABLES: Mapping[str, Table] = {
    "BlackBox": black_box.TABLE,
    "Cesium": cesium.TABLE,
    "Cesium, lenient": cesium.LENIENT,
    "Cesium, binary": cesium.BINARY,
    "Timebridge": timebridge.TABLE,
    "Kaspr": kaspr.TABLE,
    "Karafka": karafka.TABLE,
    "Scheduler": scheduler.TABLE,
    "Scheduler, an hour of grace": scheduler.BOUNDED,
    "SchedulerJson": scheduler_json.TABLE,
    "Redelivery": redelivery.TABLE,
    "Redelivery, twice at most": redelivery.BOUNDED,
}
IN_MEMORY: Mapping[str, Table] = {**TABLES, "Scheduler, since yesterday": scheduler.DAILY}
"""With those that a real clock could pass midnight in."""
