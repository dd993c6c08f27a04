"""Mutants of what a source is: its name for its id, and offsets and ids of another one believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tests.simulation.mutants.breaking import Mutant, Patch
from tests.simulation.world.source_client import SimulatedSource

from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.segments import decode_id
from delaytopic_relay.backlog.protocol import Forgotten
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.progress import Identity, Progress
from delaytopic_relay.core.recovery import Acceptance, Begin, Found, SourceTopic, judge
from delaytopic_relay.engine import recovery
from delaytopic_relay.engine.recovery import Takeover
from delaytopic_relay.ports import Place


def name_for_id() -> Sequence[Patch]:
    by_name = property(lambda self: Identity.of(self.cluster_id, self.name))
    return [(SourceTopic, "identity", by_name)]


def former_ids() -> Sequence[Patch]:
    def decoded(self: BucketBacklog, partition: int, values: Mapping[bytes, bytes]) -> dict[bytes, IdEntry]:
        return {name: decode_id(value)[1] for name, value in values.items()}

    original = BucketBacklog.forget

    def forget(self: BucketBacklog, partition: int, marks: Collection[str], committed: Progress | None) -> Forgotten:
        return original(self, partition, marks, committed)._replace(writes=())

    return [(BucketBacklog, "_decoded", decoded), (BucketBacklog, "forget", forget)]


def foreign_offsets() -> Sequence[Patch]:
    def believing(found: Found, source: SourceTopic, accepted: Acceptance, now_ms: int) -> Begin:
        if found.committed is not None and not found.offset_reset:
            return Begin.AS_COMMITTED
        return judge(found, source, accepted, now_ms)

    return [(recovery, "judge", believing), (recovery, "is_foreign", lambda committed, source: False)]


def cut_unseen() -> Sequence[Patch]:
    return [(Takeover, "_cut", lambda self, partitions, committed, seen: dict.fromkeys(partitions, False))]


def no_evidence() -> Sequence[Patch]:
    return [(BucketBacklog, "former_life", lambda self, partition, *, offset_reset: None)]


def aborted_for_cut() -> Sequence[Patch]:
    def cut_below(self: SimulatedSource, places: Mapping[int, Place]) -> dict[int, bool]:
        return {
            each: self._kafka.source[each].end_of_epoch(place.epoch) < place.position for each, place in places.items()
        }

    return [(SimulatedSource, "cut_below", cut_below)]


MUTANTS = (
    Mutant("name-for-id", "takes the name of a topic for its id", name_for_id, "Identity"),
    Mutant("former-ids", "believes the id entries of a former topic", former_ids, "IdentityBuckets"),
    Mutant("foreign-offsets", "believes offsets whatever they are of", foreign_offsets, "Identity"),
    Mutant("cut-unseen", "does not look whether a log was cut and has grown again", cut_unseen, "Identity"),
    Mutant(
        "aborted-for-cut",
        "takes a log for cut where a later epoch has begun with aborted records",
        aborted_for_cut,
        "IdentityBuckets",
    ),
    Mutant(
        "bare-offset-believed",
        "goes on from a bare offset, whatever bucket topics hold",
        no_evidence,
        "IdentityBuckets",
    ),
)
