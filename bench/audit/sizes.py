"""The table of sizes: audits of more and more records, and of as many in more and more DelayTopics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.audit.audits import audit
from bench.audit.topics import Hour, hour_of_records, small_hours
from bench.audit.watch import Cost
from bench.figures.table import Table

_MIB: Final = 1 << 20


@dataclass(frozen=True)
class Work:
    """The records to audit. `topics` are numbers of DelayTopics where they are many, `kafka` is the broker's folder."""

    bootstrap_servers: str
    kafka: Path
    start_ms: int
    records: int
    topics: tuple[int, ...]


@dataclass(frozen=True)
class Size:
    """One row: the audit of so many records of so many DelayTopics, and what the brokers have of them."""

    records: int
    topics: int
    cost: Cost
    bytes_on_brokers: int

    def to_document(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "records": self.records,
            "delayTopics": self.topics,
            **self.cost.to_document(),
            "cpuMicrosecondsPerRecord": self._cpu_us(),
            "bytesOnBrokers": self.bytes_on_brokers,
        }

    def row(self) -> tuple[str, ...]:
        """Return it for people."""
        cost = self.cost
        numbers = (f"{self.records:,}", f"{self.topics:,}", f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}")
        mebibytes = (f"{size / _MIB:,.0f}" for size in (cost.bytes_read, self.bytes_on_brokers))
        return (*numbers, f"{self._cpu_us():,}", f"{cost.peak_mib:,}", *mebibytes)

    def _cpu_us(self) -> float:
        return round(self.cost.cpu_seconds / self.records * 1e6, 1)


def measure_sizes(work: Work, folder: Path, say: Callable[[str], None]) -> list[Size]:
    """Audit a tenth of so many records, as many, and ten times as many; and the tenth as many DelayTopics."""
    found = []
    for number, hours in enumerate(_cases(work)):
        records = sum(hour.records for hour in hours)
        say(f"sizes: produced {records:,} records of {len(hours):,} DelayTopics, and their deliveries")
        on_brokers = _bytes_on_brokers(work.kafka, {hour.name for hour in hours})
        found.append(Size(records, len(hours), audit(hours, folder / str(number)), on_brokers))
        say(f"sizes: {found[-1].to_document()}")
    return found


def _bytes_on_brokers(folder: Path, names: Collection[str]) -> int:
    """Return the size of the segments of all topics of these hours."""
    return sum(file.stat().st_size for file in folder.rglob("*.log") if file.parent.name.partition(".")[0] in names)


def table_of(sizes: list[Size]) -> Table:
    """Return the rows for people."""
    cost = ("seconds", "processor s", "processor µs a record", "MiB of memory")
    return Table(("records", "DelayTopics", *cost, "MiB read", "MiB on the brokers"), [size.row() for size in sizes])


def _cases(work: Work) -> Iterator[list[Hour]]:
    """Produce the DelayTopics of each row."""
    server, start_ms, least = work.bootstrap_servers, work.start_ms, max(1, work.records // 10)
    for size in (least, work.records, 10 * work.records):
        yield [hour_of_records(server, f"size-{size}", size, start_ms)]
    for topics in work.topics:
        names = [f"one-of-{topics}-{number}" for number in range(topics)]
        yield small_hours(server, names, max(1, least // topics), start_ms)
