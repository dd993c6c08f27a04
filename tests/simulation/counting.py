"""Events that ten thousand histories have to contain: every fault, and every way to recover."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.faults import all_names, names_of_members

from delaytopic_api.relay import Ending

# Few histories of buckets have Redis: not each of its effects meets each fault in so many.
REDIS_EFFECTS = tuple(f" {effect}" for effect in ("position", "put", "slices", "load", "ids", "drop", "check"))
FAULTS_OF_BUCKETS = (
    *(name for name in all_names() if not name.endswith(REDIS_EFFECTS)),
    *(f"event: {name}" for name in ("retain", "rotate", "set clock", "bucket damaged", "start", "stop")),
    "transaction expired",
)
FAULTS = (
    *all_names(),
    *(f"event: {name}" for name in ("retain", "rotate", "set clock")),
    *(f"event: backlog {name}" for name in ("away", "copied", "rolled back", "wiped")),
    *("event: start", "event: stop", "transaction expired"),
)
PATHS = tuple(
    f"path: {name}"
    for name in (
        "woke up in the middle of a tick",
        "woke up as a zombie in the middle of a tick",
        "outcome unknown",
        "late request carried out",
        "late request refused",
        "not aborted",
        "producer replaced",
        "record refused",
        "dead letter",
        "offsets in doubt",
        "offset out of range",
        "evicted",
        "revoked",
        "fenced the last owner",
        "replayed",
        "backlog away",
        "started over, aborted",
        "started over, commit-unknown",
        "started over, fenced",
        "started over, backlog-moved",
        "recovered, assigned",
        "recovered, aborted",
        "recovered, commit-unknown",
        "recovered, fenced",
        "recovered, backlog-moved",
        "recovery put off, KafkaUnavailable",
        "recovery put off, BacklogMoved",
        "recovery put off, BacklogUnavailable",
        "tried again, KafkaUnavailable",
        "tried again, BacklogUnavailable",
        "tried again, moved",
        "superseded",
        "cancelled",
        "cancelled too late",
    )
)
PATHS_OF_BUCKETS = (
    *(path for path in PATHS if path not in ("path: recovery put off, BacklogMoved",)),
    *("path: bucket read", "path: recovered, bucket-lost", "path: range split", "path: range merged"),
    *("path: recovery put off, BucketLost", "path: recovery put off, corrupt"),
)
"""Some of these histories have Redis in turn."""
PATHS_OF_MARKERS = tuple(f"path: {name}" for name in ("put off", "withdrawn on its way", "looked ahead"))
FAULTS_OF_REDIS = tuple(f"event: {name}" for name in ("backlog full", "backlog demoted", "segment replaced"))
PATHS_OF_REDIS = ("path: tried again, PutRefused", "path: segment replaced", "path: skipped what somebody else wrote")
FAULTS_OF_MEMBERS = (*names_of_members(), "event: start twin", "event: remove")
FAULTS_OF_MEMBERS_OF_BUCKETS = tuple(name for name in FAULTS_OF_MEMBERS if not name.endswith(REDIS_EFFECTS))
PATHS_OF_MEMBERS = tuple(
    f"path: {name}"
    for name in (
        "fenced by its name",
        "took a place in the group",
        "took its own name back",
        "taken out of the group",
        "partitions without an owner",
    )
)
FAULTS_OF_TARGETS = ("event: target silent",)
PATHS_OF_TARGETS = tuple(
    f"path: {name}"
    for name in (
        *("not acknowledged", "started over, unanswered", "another id", "dead letter of a target"),
        *("compresses from now on", "started over, producer-outdated"),
    )
)
PATHS_OF_EDITS = (
    *("path: former rules in force for what waits", "path: former rules done"),
    *("path: an edit waits", "path: no queue any more"),
)
PATHS_OF_OUTCOMES = tuple(f"path: {ending}" for ending in Ending)
PATHS_OF_RULES = tuple(f"path: {name}" for name in ("went on", "withdrawn on its way", "looked ahead"))
PATHS_OF_CLOCKS = ("path: delivery held", "path: cursor went back")
PATHS_OF_MOVES = ("path: former rules in force for what waits", "path: recovered, clock")
FAULTS_OF_IDENTITY = ("event: source changed", "event: accept")
PATHS_OF_IDENTITY = ("path: recovery put off, StandsStill", "path: began anew")
ENOUGH_RUNS = 10_000
"""From so many histories on, none of these may be at zero."""


Names = tuple[tuple[str, ...], tuple[str, ...]]
EXPECTED: dict[str, Names] = {
    "RedisZset": (FAULTS, PATHS),
    "KafkaBuckets": (FAULTS_OF_BUCKETS, PATHS_OF_BUCKETS),
    "Scheduler": (FAULTS, PATHS),
    "Redelivery": (FAULTS, (*PATHS, *PATHS_OF_MARKERS)),
    "RedeliveryBuckets": (FAULTS_OF_BUCKETS, (*PATHS_OF_BUCKETS, *PATHS_OF_MARKERS)),
    "Trouble": ((*FAULTS, *FAULTS_OF_REDIS), (*PATHS, *PATHS_OF_REDIS)),
    "Targets": ((*FAULTS, *FAULTS_OF_TARGETS), (*PATHS, *PATHS_OF_TARGETS)),
    "TargetsBuckets": ((*FAULTS_OF_BUCKETS, *FAULTS_OF_TARGETS), (*PATHS_OF_BUCKETS, *PATHS_OF_TARGETS)),
    "Members": ((*FAULTS, *FAULTS_OF_MEMBERS), (*PATHS, *PATHS_OF_MEMBERS)),
    "MembersBuckets": ((*FAULTS_OF_BUCKETS, *FAULTS_OF_MEMBERS_OF_BUCKETS), (*PATHS_OF_BUCKETS, *PATHS_OF_MEMBERS)),
    "Edits": ((*FAULTS, "event: edit"), (*PATHS, *PATHS_OF_EDITS)),
    "Clocks": ((*FAULTS, "event: clock silent"), (*PATHS, *PATHS_OF_CLOCKS)),
    "ClocksBuckets": ((*FAULTS_OF_BUCKETS, "event: clock silent"), (*PATHS_OF_BUCKETS, *PATHS_OF_CLOCKS)),
    "Moves": ((*FAULTS, "event: advance"), (*PATHS, *PATHS_OF_MOVES)),
    "MovesBuckets": ((*FAULTS_OF_BUCKETS, "event: advance"), (*PATHS_OF_BUCKETS, *PATHS_OF_MOVES)),
    "HandOvers": (FAULTS_OF_BUCKETS, PATHS_OF_BUCKETS),
    "Outcomes": (FAULTS, (*PATHS, *PATHS_OF_OUTCOMES)),
    "OutcomesBuckets": (FAULTS_OF_BUCKETS, (*PATHS_OF_BUCKETS, *PATHS_OF_OUTCOMES)),
    "Recurrence": (FAULTS, (*PATHS, *PATHS_OF_RULES)),
    "RecurrenceBuckets": (FAULTS_OF_BUCKETS, (*PATHS_OF_BUCKETS, *PATHS_OF_RULES)),
    "EditsBuckets": ((*FAULTS_OF_BUCKETS, "event: edit"), (*PATHS_OF_BUCKETS, *PATHS_OF_EDITS)),
    # Few of the other faults meet one of these changes in so many histories; all of them are in the families above.
    "Identity": (FAULTS_OF_IDENTITY, PATHS_OF_IDENTITY),
    "IdentityBuckets": (FAULTS_OF_IDENTITY, PATHS_OF_IDENTITY),
}


def missing(counts: Mapping[str, int], backend: str = "RedisZset") -> list[str]:
    """Return what never happened."""
    faults, paths = EXPECTED[backend]
    return [name for name in (*faults, *paths) if counts.get(name, 0) == 0]


def table(counts: Mapping[str, int], backend: str = "RedisZset") -> list[str]:
    """Faults and paths with how often they happened, as lines of text."""
    faults, paths = EXPECTED[backend]
    width = max(map(len, (*faults, *paths)))
    rows = [f"  {name.removeprefix('path: '):<{width}} {counts.get(name, 0):>9,}" for name in (*faults, *paths)]
    return ["Faults injected:", *rows[: len(faults)], "Paths taken:", *rows[len(faults) :]]
