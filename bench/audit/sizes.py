"""The table of sizes: audits of more and more records, of one and many DelayTopics, on one and two workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.audit.audits import audit
from bench.audit.standalone import HOST, standalone_spark
from bench.audit.topics import Hour, hour_of_records
from bench.audit.watch import Cost, Role
from bench.figures.table import Table
from bench.machine import processors

WORKERS: Final = (1, 2)
_ON_THE_DRIVER: Final = ("--conf", f"spark.driver.host={HOST}", "--conf", "spark.executor.memory=1g")


@dataclass(frozen=True)
class Work:
    """The records to audit: `topics` is the number of DelayTopics where they are many."""

    bootstrap_servers: str
    start_ms: int
    records: int
    topics: int


@dataclass(frozen=True)
class Size:
    """One row: the audit of so many records of so many DelayTopics, on so many workers."""

    records: int
    topics: int
    workers: int
    cost: Cost

    def to_document(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "records": self.records,
            "delayTopics": self.topics,
            "workers": self.workers,
            "seconds": round(self.cost.seconds, 1),
            "cpuSeconds": self.cost.cpu_by_role,
            "peakMemoryMiB": self.cost.peak_mib_by_role,
        }


def measure_sizes(work: Work, folder: Path, say: Callable[[str], None]) -> list[Size]:
    """Audit a tenth of so many records, as many, and ten times as many; and the tenth as many DelayTopics."""
    cases = list(_cases(work, say))
    found = []
    for workers in WORKERS:
        place = folder / f"workers-{workers}"
        with standalone_spark(place / "spark", workers=workers, cores=max(1, processors() // max(WORKERS))) as spark:
            options = ("--master", spark.url, *_ON_THE_DRIVER)
            for number, hours in enumerate(cases):
                cost = audit(hours, place / str(number), options, spark.worker_processes)
                found.append(Size(sum(hour.records for hour in hours), len(hours), workers, cost))
                say(f"sizes: {found[-1].to_document()}")
    return found


def per_topic_seconds(sizes: Sequence[Size], workers: int) -> float:
    """Return how much longer a run takes for each DelayTopic beyond the first, with as many records in all."""
    least = min(size.records for size in sizes)
    of_least = [size for size in sizes if (size.workers, size.records) == (workers, least)]
    one, many = sorted(of_least, key=lambda size: size.topics)
    return round((many.cost.seconds - one.cost.seconds) / (many.topics - one.topics), 2)


def table_of(sizes: Sequence[Size]) -> Table:
    """Return the rows for people."""
    headings = ("records", "DelayTopics", "workers", "seconds")
    cpu = tuple(f"CPU s {role}" for role in Role)
    memory = tuple(f"MiB {role}" for role in Role)
    return Table((*headings, *cpu, *memory), [_row(size) for size in sizes])


def _row(size: Size) -> tuple[str, ...]:
    numbers = (f"{size.records:,}", str(size.topics), str(size.workers), f"{size.cost.seconds:.1f}")
    cpu = tuple(f"{size.cost.cpu_by_role.get(role, 0):.1f}" for role in Role)
    memory = tuple(f"{size.cost.peak_mib_by_role.get(role, 0):,}" for role in Role)
    return (*numbers, *cpu, *memory)


def _cases(work: Work, say: Callable[[str], None]) -> Iterator[list[Hour]]:
    """Produce the DelayTopics of each row."""
    server, start_ms, each = work.bootstrap_servers, work.start_ms, max(1, work.records // 10 // work.topics)
    for size in (each * work.topics, work.records, 10 * work.records):
        yield [hour_of_records(server, f"size-{size}", size, start_ms)]
        say(f"sizes: produced {size:,} records and their deliveries")
    names = [f"one-of-many-{number}" for number in range(work.topics)]
    yield [hour_of_records(server, name, each, start_ms, partitions=1) for name in names]
