"""The well-known design as it is described, ten records a second: what it delivers, which nobody needs to wait for."""

from __future__ import annotations

import time
from typing import Final

from bench.bed import Bed
from bench.cases.contenders import DESCRIBED
from bench.cases.throughput import PAST_MS, Rate
from bench.clock import now_ms, wait_for
from bench.preload import Preload
from bench.processes.plan import Phase, Plan
from bench.watch import Watch

LOAD: Final = Plan((Phase(5, 6),), burst=0)
"""Half of what it can do: beyond that its lateness is without bound."""
RECORDS = 1_000
SECONDS = 8.0
TIMEOUT_SECONDS = 30.0


def run_described(bed: Bed, name: str) -> Rate:
    """Count the records past due that it delivers, in some seconds from the first on."""
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target)
    process = DESCRIBED.make(bed, name, source, target)
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=process.group)
    preload = Preload(bed.bootstrap_servers, source)
    preload.fill(RECORDS, [int(now_ms()) - PAST_MS] * RECORDS)
    preload.show()
    try:
        process.start()
        wait_for(lambda: sum(watch.sample().target_ends) > 0, f"{name}: the first", timeout_s=TIMEOUT_SECONDS)
        first, started_s = sum(watch.sample().target_ends), time.monotonic()
        time.sleep(SECONDS)
        delivered, seconds = sum(watch.sample().target_ends) - first, time.monotonic() - started_s
        process.stop()
    finally:
        process.kill()
    bed.delete(source, target)
    return Rate(delivered, seconds)
