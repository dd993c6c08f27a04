"""`python -m tests.data.api.recurrence.peers.write ROBFIG SPRING`: ask both programs, and write `answers.tsv` anew.

The arguments are commands that run `robfig.go` (with github.com/robfig/cron/v3) and `Spring.java` (with spring-context,
spring-core and spring-jcl): each reads questions, a line each, and prints minutes.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

ANSWERS: Final = Path(__file__).parent / "answers.tsv"
ZONES: Final = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"),
    *("Asia/Beirut", "Asia/Tehran", "Africa/Casablanca", "UTC"),
)
EXPRESSIONS: Final = (
    *("30 2 * * *", "15 2 * * *", "0,30 2 * * *", "30 0 * * *", "0 0 * * *", "30 23 * * *", "0 3 * * *"),
    *("*/20 2 * * *", "*/20 * * * *", "0 * * * *", "30 */2 * * *", "0 1-4 * * *", "0 9 * * mon-fri"),
)
FIRST: Final = int(datetime(2021, 1, 1, tzinfo=UTC).timestamp()) // 60
LAST: Final = int(datetime(2023, 1, 1, tzinfo=UTC).timestamp()) // 60
"""Of years that are over no zone is changed any more, and in these Tehran changed its clocks, too."""
DAY: Final = 24 * 60


def windows(zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """Yield the two days around each change of clock within two years, in epoch minutes; without one, the first two."""
    offsets = [datetime.fromtimestamp(minute * 60, zone).utcoffset() for minute in range(FIRST, LAST, 30)]
    changes = [FIRST + 30 * place for place in range(1, len(offsets)) if offsets[place] != offsets[place - 1]]
    for change in changes or [FIRST + DAY]:
        yield change - DAY, change + DAY


def main(robfig: str, spring: str) -> None:
    """Write zone, expression, first and last minute, and what both say, counted from the first minute."""
    questions = [
        f"{zone}\t{expression}\t{first}\t{last}"
        for zone in ZONES
        for first, last in windows(ZoneInfo(zone))
        for expression in EXPRESSIONS
    ]
    asked = "\n".join(questions) + "\n"
    answers = [
        subprocess.run(
            shlex.split(command), input=asked, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.splitlines()
        for command in (robfig, spring)
    ]
    rows = ["\t".join(row) for row in zip(questions, *answers, strict=True)]
    ANSWERS.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
