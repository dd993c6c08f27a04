from __future__ import annotations

import sys

from bench.slo.sizes import Size, per_topic_seconds, table_of
from bench.slo.watch import Cost, run_watched

BUSY = """
import os, sys, time
if os.fork():
    sys.exit(os.wait()[1])
while time.process_time() < 1:
    pass
print("done", flush=True)
"""


def size(records: int, topics: int, workers: int, seconds: float) -> Size:
    roles = {"driver": 2.5, "executor": 12.0}
    return Size(records, topics, workers, Cost(seconds, 3.0, 900, "", roles, {"driver": 1_500}))


def test_a_size_is_a_row_of_its_cost_by_role() -> None:
    found = table_of([size(100_000, 1, 2, 12.34)]).markdown().splitlines()

    assert found[0] == (
        "| records | DelayTopics | workers | seconds | CPU s command | CPU s driver | CPU s executor "
        "| CPU s pythonWorker | MiB command | MiB driver | MiB executor | MiB pythonWorker |"
    )
    assert found[2] == "| 100,000 | 1 | 2 | 12.3 | 0.0 | 2.5 | 12.0 | 0.0 | 0 | 1,500 | 0 | 0 |"


def test_a_delay_topic_costs_what_a_run_of_many_takes_longer_than_one_of_as_many_records() -> None:
    sizes = [size(100, 1, 1, 10.0), size(100, 1, 2, 8.0), size(1_000, 1, 2, 30.0), size(100, 100, 2, 107.0)]

    assert per_topic_seconds(sizes, workers=2) == 1.0


def test_processes_are_watched_by_the_part_that_they_play() -> None:
    cost = run_watched([sys.executable, "-c", BUSY])

    assert cost.output == "done\n"
    assert set(cost.cpu_by_role) == {"command", "pythonWorker"}
    assert cost.cpu_by_role["pythonWorker"] > 0.5 > cost.cpu_by_role["command"]
    assert cost.peak_mib >= max(cost.peak_mib_by_role.values()) > 0
