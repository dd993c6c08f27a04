from __future__ import annotations

from array import array
from pathlib import Path

from bench.processes.arrival_reader import read_arrivals, write_arrivals


def test_arrivals_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "case.arrivals"
    sequences, arrived_ms = array("q", [2, 0, 1]), array("q", [1_795_269_686_270, 1_795_269_686_271, 1_795_269_686_271])

    write_arrivals(path, sequences, arrived_ms)

    assert read_arrivals(path) == (sequences, arrived_ms)
    assert list(tmp_path.iterdir()) == [path]
