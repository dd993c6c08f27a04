"""Buckets of commands: a run that looks for some ids reads the files of these alone, of runs that may have more to say
of them. Pure.

A hash of an id has its bucket, and each table of commands as many as its rows need: always a power of two, so that an
id's bucket among the most that there are tells its bucket in every table. Beside them, in buckets of their own, are the
commands that recur: what one of these says depends on its whole chain.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from delaytopic_audit.model.manifest import Run

ROWS_OF_A_BUCKET: Final = 100_000
MOST_BUCKETS: Final = 256
MOST_FIRSTS: Final = 100_000
"""Rows that a driver looks at: with more source partitions, fewer buckets of each are told apart."""
_Key = tuple[int, int]
"""A DelayTopic's number and a partition of its source."""


class First(NamedTuple):
    """A question of a run to a bucket, for one source partition."""

    delay_topic: int
    partition: int
    bucket: int
    place: int
    """The first offset of which commands may say something."""
    recurs: bool
    """True: a record is among them that recurs, or an occurrence."""


class _Known(NamedTuple):
    """The offsets of one source partition that a run is known to have read."""

    run: int
    start: int
    end: int


def bucket_count(commands: int) -> int:
    """Return how many buckets a table of so many commands has."""
    return min(MOST_BUCKETS, 1 << (commands // ROWS_OF_A_BUCKET).bit_length())


def told_apart(runs: Sequence[Run]) -> int:
    """Return the number of buckets to ask for, given the number of source partitions that runs have read."""
    partitions, buckets = len(_known(runs)), MOST_BUCKETS
    while buckets > 1 and buckets * partitions > MOST_FIRSTS:
        buckets //= 2
    return buckets


def folders_of(runs: Sequence[Run], firsts: Iterable[First], buckets: int) -> tuple[list[str], list[str]]:
    """Return the folders, relative to the ledger, with all that matters to these: of commands, and of what recurs.

    `buckets` is the number of those that `firsts` tell apart. Commands in front of a place say nothing of it, so runs
    that had read no further are left out. Chains are read whole: which slot of one was the last follows from all of it.
    """
    since, chained = dict[int, int](), set[int]()
    starts = {key: _starts(its) for key, its in _known(runs).items()}
    for first in firsts:
        begins = _first_run(starts.get((first.delay_topic, first.partition)), first.place)
        since[first.bucket] = min(begins, since.get(first.bucket, begins))
        if first.recurs:
            chained.add(first.bucket)
    commands, chains = list[str](), list[str]()
    for place, run in enumerate(runs):
        if run.buckets is None:
            continue
        wanted, least = {bucket for bucket, begins in since.items() if begins <= place}, min(run.buckets.of, buckets)
        commands += _folders(run.folder, recurs=False, buckets=_among(run.buckets.commands, wanted, least))
        chains += _folders(run.folder, recurs=True, buckets=_among(run.buckets.chains, wanted | chained, least))
    return commands, chains


def all_folders(runs: Iterable[Run]) -> list[str]:
    """Return the folders of all commands of these runs, relative to the ledger."""
    return [
        folder
        for run in runs
        if run.buckets is not None
        for recurs, buckets in ((False, run.buckets.commands), (True, run.buckets.chains))
        for folder in _folders(run.folder, recurs=recurs, buckets=buckets)
    ]


def _among(buckets: Iterable[int], wanted: Iterable[int], least: int) -> Iterator[int]:
    """Yield the buckets of a table that may have an id of those that are wanted, by the fewer of both numbers."""
    rests = {bucket % least for bucket in wanted}
    return (bucket for bucket in buckets if bucket % least in rests)


def _folders(folder: str, *, recurs: bool, buckets: Iterable[int]) -> list[str]:
    return [f"{folder}/commands/recurs={str(recurs).lower()}/bucket={bucket}" for bucket in buckets]


def _known(runs: Sequence[Run]) -> Mapping[_Key, Sequence[_Known]]:
    found = dict[_Key, list[_Known]]()
    for place, run in enumerate(runs):
        for number, pieces in run.asks.items():
            for piece in pieces:
                found.setdefault((number, piece.partition), []).append(_Known(place, piece.start, piece.end))
    return found


def _starts(known: Sequence[_Known]) -> tuple[list[int], list[int]]:
    """Return ends of offsets in their order, and for each the first run that may have commands in front of it.

    A run that has forgotten what it read had read up to where the next one began at the most.
    """
    ends, runs, furthest = [known[0].start], [0], known[0].start
    for each, start in zip(known, [*(later.start for later in known[1:]), 0], strict=True):
        furthest = max(furthest, each.end, start)
        ends.append(furthest)
        runs.append(each.run)
    return ends, runs


def _first_run(starts: tuple[list[int], list[int]] | None, place: int) -> int:
    """Return the first run that may have commands at an offset or behind it: any, where nobody knows."""
    if starts is None:
        return 0
    ends, runs = starts
    found = bisect_right(ends, place)
    return runs[found] if found < len(ends) else 0
