"""The relays of a DelayTopic as a whole: how many, whether they work, and what they say is pending. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from delaytopic_api import RelayStatus
from delaytopic_api.documents import BacklogStatus, ConditionType
from delaytopic_api.relay import ShardState, ShardStatus
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition, instant
from delaytopic_operator.resources.identity import CONFIG_HASH
from delaytopic_operator.scaling.signals import FleetSignals
from delaytopic_operator.scaling.state import ScalingMemory

_ENDED: Final = ("Succeeded", "Failed")
_PULL_REASONS: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


@dataclass(frozen=True)
class RelayPage:
    """The answer of one relay, or why there is none."""

    pod: str
    status: RelayStatus | None
    failure: str | None = None


@dataclass(frozen=True)
class FleetFacts:
    """The relays of one DelayTopic, which change by the second: the Deployment, its pods, the pages of those that
    answer, and what scaling knows of them.
    """

    deployment: Mapping[str, Any] | None
    pods: Sequence[Mapping[str, Any]]
    pages: Sequence[RelayPage] = ()
    partitions: int | None = None
    """The number of the source's partitions; None while it is not known."""
    gone: frozenset[str] = frozenset()
    """The pods of relays that have gone or ended since the last look, by name."""
    signals: FleetSignals | None = None
    memory: ScalingMemory | None = None
    """The memory of scaling in this process; None: nothing yet."""
    saved_memory: ScalingMemory | None = None
    """The memory of scaling, as written down."""
    asked_for_ms: int | None = None
    """The time that the look was asked for; with too much to do it comes later. None: it was asked for now."""

    @property
    def desired(self) -> int:
        """Return the number that the Deployment asks for."""
        return int(self.deployment.get("spec", {}).get("replicas", 1)) if self.deployment else 0

    @property
    def living(self) -> frozenset[str]:
        """Return the names of pods whose relay may run, or start again in its place.

        One that has ended stays visible for a while.
        """
        return frozenset(
            pod["metadata"]["name"] for pod in self.pods if pod.get("status", {}).get("phase") not in _ENDED
        )

    @property
    def replicas(self) -> int:
        """Pods of the Deployment."""
        return self._count("replicas")

    @property
    def ready(self) -> int:
        """Pods that are ready."""
        return self._count("readyReplicas")

    @property
    def rolling(self) -> str | None:
        """The part of the Deployment that is still on its way, in words."""
        if self.deployment is None:
            return "the relays are being made"
        status, generation = self.deployment.get("status", {}), self.deployment["metadata"].get("generation", 0)
        if status.get("observedGeneration", 0) < generation:
            return "the relays are about to change"
        if self._count("updatedReplicas") < self.desired:
            return f"{self._count('updatedReplicas')} of {self.desired} relays have the new configuration"
        if self.replicas > self.desired:
            return f"{self.replicas - self.desired} relays are about to end"
        return None

    @cached_property
    def shards(self) -> dict[int, ShardStatus]:
        """The newest word about each source partition; two relays may both speak of one that just changed hands."""
        newest: dict[int, ShardStatus] = {}
        for page in sorted((page.status for page in self.pages if page.status), key=lambda status: status.as_of_ms):
            newest |= {shard.partition: shard for shard in page.shards}
        return newest

    @property
    def complete(self) -> bool:
        """True if every source partition has a relay that knows what of it is pending."""
        known = [shard for shard in self.shards.values() if shard.state not in _UNKNOWING]
        return self.partitions is not None and len(known) >= self.partitions

    @property
    def of_template(self) -> FleetFacts:
        """Return the same with the pages of those alone that run with the configuration that the Deployment names."""
        template = (self.deployment or {}).get("spec", {}).get("template") or {}
        known = {pod["metadata"]["name"] for pod in self.pods if _config_hash(pod) == _config_hash(template)}
        return replace(self, pages=[page for page in self.pages if page.pod in known])

    @property
    def pending(self) -> int | None:
        """Taken in and not yet delivered; None while not every partition is accounted for."""
        return sum(shard.pending for shard in self.shards.values()) if self.complete else None

    @property
    def withdrawn(self) -> int:
        """The least number of these that were cancelled or replaced: nobody waits for them, and no decision counts them
        out.
        """
        return sum(shard.withdrawn for shard in self.shards.values())

    @property
    def to_move(self) -> int:
        """Source offsets that relays still have to read again before they deliver."""
        return sum(shard.replay_lag for shard in self.shards.values())

    def _count(self, field: str) -> int:
        return int(self.deployment.get("status", {}).get(field, 0)) if self.deployment else 0


def _config_hash(pod: Mapping[str, Any]) -> str | None:
    found: Mapping[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    return found.get(CONFIG_HASH)


_UNKNOWING: Final = (ShardState.RECOVERING, ShardState.REPLAYING, ShardState.FAILED)


def quota_condition(fleet: FleetFacts) -> Condition | None:
    """Return BackendReady for a DelayTopic that has used up what it may keep in Redis; None if it has not.

    It is no fault of the backend, and what waits is delivered: the status stays True.
    """
    full = sorted(number for number, shard in fleet.shards.items() if shard.redis_full)
    if not full:
        return None
    message = (
        f"{len(full)} source partitions (the first: {full[0]}) have no room in Redis: it is full, or what waits has "
        "used up their share (limits.maxRedisMemory of the DelayClass, or else as much as Redis has left). What waits "
        "is delivered; further records wait in the source topic. Ask who looks after the class for more, or send less "
        "ahead"
    )
    return Condition(ConditionType.BACKEND_READY, TRUE, "RedisQuotaReached", message)


def backlog(fleet: FleetFacts, look_ahead_ms: int) -> BacklogStatus | None:
    """Return `status.backlog`, or None when no relay answers."""
    statuses = [page.status for page in fleet.pages if page.status]
    if not statuses:
        return None
    next_due = [status.next_due_ms for status in statuses if status.next_due_ms is not None]
    # Bins end as far after the page as it says; the page is younger than the look at the cluster that it is part of.
    ahead = (
        bin for status in statuses for bin in status.due_histogram if bin.up_to_ms <= status.as_of_ms + look_ahead_ms
    )
    return BacklogStatus.model_validate(
        {
            "pending": sum(status.pending - status.withdrawn for status in statuses),
            "overdue": sum(status.overdue for status in statuses),
            "dueWithinLookAhead": sum(bin.records for bin in ahead),
            "nextDue": instant(min(next_due)) if next_due else None,
            "asOf": instant(min(status.as_of_ms for status in statuses)),
        }
    )


def availability(fleet: FleetFacts) -> Condition:
    """Judge if there are relays that work; the reason is that of the pod that is worst off."""
    type_ = ConditionType.RELAY_AVAILABLE
    if fleet.deployment is None:
        return Condition(type_, FALSE, "Creating", "the relays are being made")
    if fleet.desired == 0:
        return Condition(type_, TRUE, "ScaledToZero", "nothing is pending and nothing arrives: no relay is needed")
    if fleet.ready == 0:
        reason, message = _problem(fleet)
        return Condition(type_, FALSE, reason, message)
    return Condition(type_, TRUE, "RelaysReady", f"{fleet.ready} of {fleet.desired} relays are ready")


def punctuality(fleet: FleetFacts, precision_ms: int, now_ms: int) -> Condition:
    """Judge if what is due was delivered within precision."""
    type_ = ConditionType.DELIVERING_ON_TIME
    statuses = [page.status for page in fleet.pages if page.status]
    if not statuses:
        return Condition(type_, UNKNOWN, "NoData", "no relay answers")
    if (differing := _clocks(statuses)) is not None:
        return Condition(type_, FALSE, "ClocksDiffer", differing)
    oldest = [status.oldest_overdue_ms for status in statuses if status.oldest_overdue_ms is not None]
    overdue = sum(status.overdue for status in statuses)
    late_ms = now_ms - min(oldest) if oldest else 0
    if overdue and late_ms > precision_ms:
        message = f"{overdue} records are overdue, the oldest by {late_ms} ms; precision is {precision_ms} ms"
        return Condition(type_, FALSE, "Overdue", message)
    return Condition(type_, TRUE, "OnTime", f"nothing is overdue by more than {precision_ms} ms")


def _clocks(statuses: Sequence[RelayStatus]) -> str | None:
    """Say what the first relay says whose clock is not the backend's; None where none does."""
    said = [
        f"relay {status.relay}: {clock.message}"
        for status in statuses
        # One that has only just asked says nothing yet.
        if (clock := status.second_clock) is not None
        and clock.message is not None
        and (clock.ahead_ms, clock.trouble) != (None, None)
    ]
    more = f" (and {len(said) - 1} further relays)" if len(said) > 1 else ""
    return f"{min(said)}{more}" if said else None


def _problem(fleet: FleetFacts) -> tuple[str, str]:
    assert fleet.deployment is not None
    for condition in fleet.deployment.get("status", {}).get("conditions", ()):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            message = str(condition.get("message", ""))
            return ("QuotaExceeded" if "quota" in message else "PodsRefused"), message
    for reason, message in _waiting(fleet.pods):
        if reason in _PULL_REASONS:
            return "ImagePull", message
        if reason == "CrashLoopBackOff":
            return "CrashLoop", message
        return reason, message
    return "MinimumReplicasUnavailable", f"0 of {fleet.desired} relays are ready"


def _waiting(pods: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", ()):
            waiting = container.get("state", {}).get("waiting") or {}
            reason = waiting.get("reason")
            if reason and reason not in ("ContainerCreating", "PodInitializing"):
                last = container.get("lastState", {}).get("terminated", {}).get("message", "")
                detail = last or waiting.get("message") or reason
                yield str(reason), f"pod {pod['metadata']['name']}: {detail}"
