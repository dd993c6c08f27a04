"""Edge: the time zone of this machine, with the rules of its clock, and not only the offset of today."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCAL: Final = Path("/etc/localtime")


def local_zone() -> tzinfo:
    """Return the zone that TZ names, else that of the machine; UTC where there is neither."""
    try:
        name = os.environ.get("TZ", "").removeprefix(":")
        if name:
            return ZoneInfo(name)
        with LOCAL.open("rb") as rules:
            return ZoneInfo.from_file(rules)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return UTC
