"""Throughput with outcomes on and off: records that leave at once, and others that wait and are cancelled."""

from __future__ import annotations

import re
import urllib.request
from array import array
from collections import Counter
from enum import StrEnum
from typing import Final

from bench.bed import Bed
from bench.cases.contenders import config_of
from bench.cases.throughput import AHEAD, TIMEOUT_SECONDS, Rate, all_there, source_ends
from bench.clock import now_ms
from bench.dialects import Speech, Written
from bench.errors import PromiseBroken
from bench.figures.tally import require_each_once, tally
from bench.preload import Preload
from bench.processes.measured import Relay, by_record
from bench.reading import read_target
from bench.records import PARTITIONS, headers_of, key_of, value_of
from bench.selection import Way
from bench.watch import Watch
from delaytopic_api.records import ACTION_CANCEL, DELIVER_ACTION, DELIVER_ID
from delaytopic_api.relay import Ending, RelayOutcomes
from delaytopic_api.values import BackendType, Dialect

PAST_MS: Final = 1_000
LATER_MS: Final = 3_600_000
"""Beyond the horizon: what is due then goes to the backlog."""
BLOCK: Final = 4
"""The records of a partition that belong together: two leave at once, one waits, and one cancels another that waits."""
DISTANCE: Final = 250
"""Blocks between a record that waits and its cancel."""
NOBODY: Final = b"nobody"
"""The id of the first cancels, for which there is no record yet."""
_COUNT: Final = re.compile(r'^delaytopic_outcome_records_total\{.*outcome="(\w+)".*\} ([0-9.e+]+)$', re.MULTILINE)


class Kind(StrEnum):
    """The kinds of records."""

    NOW = "now"
    LATER = "later"
    CANCEL = "cancel"


_IN_A_BLOCK: Final = (Kind.NOW, Kind.NOW, Kind.LATER, Kind.CANCEL)


def kind_of(sequence: int) -> Kind:
    """Return what a record is."""
    return _IN_A_BLOCK[sequence // PARTITIONS % BLOCK]


def cancelled_by(sequence: int) -> int:
    """Return the record that a cancel is for, in its partition; below 0 where there is none yet."""
    return sequence - PARTITIONS * (1 + BLOCK * DISTANCE)


def write(sequence: int, due_ms: int | None, target: str) -> Written:
    """Write a record; `due_ms` is over."""
    kind, key = kind_of(sequence), key_of(sequence)
    if kind is Kind.CANCEL:
        name = key_of(cancelled_by(sequence)) if cancelled_by(sequence) >= 0 else NOBODY
        return key, b"", [(DELIVER_ACTION, ACTION_CANCEL), (DELIVER_ID, name)]
    later_ms = LATER_MS if kind is Kind.LATER else 0
    return key, value_of(sequence), [*headers_of((due_ms or 0) + later_ms), (DELIVER_ID, key)]


def endings(records: int) -> Counter[str]:
    """Return how many outcomes of each kind so many records have."""
    kinds = Counter(map(kind_of, range(records)))
    early = sum(kind_of(each) is Kind.CANCEL and cancelled_by(each) < 0 for each in range(records))
    cancels = {Ending.CANCELLED: kinds[Kind.CANCEL] - early, Ending.NOT_PENDING: early}
    return Counter({str(ending): count for ending, count in {Ending.DELIVERED: kinds[Kind.NOW], **cancels}.items()})


SPEECH: Final = Speech(Dialect.NATIVE, write)


def run_with_outcomes(bed: Bed, name: str, records: int, way: Way, backend: BackendType, *, told: bool) -> Rate:
    """All records become readable in one instant to a waiting relay, which tells outcomes or not; until all are
    committed. `way` has transactions, and `records` end a block of all partitions.

    Raises `PromiseBroken` unless each record has arrived once, and each outcome was written once.
    """
    source, target, outcomes = f"{name}.source", f"{name}.target", f"{name}.outcomes"
    bed.create(source, target, f"{target}.dlq", outcomes)
    config = config_of(bed, name, (source, target), way.guarantee, by_record(), backend)
    config = config.model_copy(update={"outcomes": RelayOutcomes(topic=outcomes)}) if told else config
    buckets = bed.create_buckets(config)
    relay = Relay(f"{name}-1", bed.directory, config, in_c=way.in_c)
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    preload = Preload(bed.bootstrap_servers, source, SPEECH, target)
    past_ms = int(now_ms()) - PAST_MS
    preload.add(range(records, records + PARTITIONS), past_ms)
    try:
        relay.start()
        relay.wait_until_it_delivers()
        preload.show()
        preload.fill(records, array("q", [past_ms]) * records)
        warm = all_there(PARTITIONS, [1] * PARTITIONS, transactional=True)
        watch.until(warm, f"{name}: the first records", timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        start_ms = preload.show()
        ends = [end + AHEAD for end in source_ends(records)]
        done = all_there(records, ends, transactional=True)
        end = watch.until(done, name, timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        written = _outcomes_of(relay)
        relay.stop()
    finally:
        relay.kill()
    delivered = read_target(bed.bootstrap_servers, target)
    bed.delete(source, target, outcomes, *buckets)
    bed.forget_backlogs()
    whole = records + PARTITIONS
    now = [each for each in range(whole) if kind_of(each) is Kind.NOW]
    require_each_once(name, tally(delivered.sequence, whole, now))
    wanted = endings(whole) if told else Counter[str]()
    if written != wanted:
        raise PromiseBroken(f"{name}: outcomes {dict(written)} were written, and there should be {dict(wanted)}")
    return Rate(records, (end.at_ms - start_ms) / 1_000)


def _outcomes_of(relay: Relay) -> Counter[str]:
    """Return how many outcomes of each kind a relay says that it has written."""
    http = relay.config.http
    with urllib.request.urlopen(f"http://{http.host}:{http.port}/metrics", timeout=5) as answer:
        page = answer.read().decode()
    return Counter({ending: int(float(count)) for ending, count in _COUNT.findall(page) if float(count)})
