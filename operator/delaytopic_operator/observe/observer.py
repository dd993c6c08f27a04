"""Edge: the observation of one DelayTopic, from Kubernetes, its relays and Kafka."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.kinds import CRON_JOB, DELAY_TOPIC
from delaytopic_operator.model.offsets_backup import is_too_large
from delaytopic_operator.model.reconciliation import Key, audit_key
from delaytopic_operator.model.rollouts import Rollouts
from delaytopic_operator.observe.audit_verdict import VerdictMessage, last_verdict, without_audit
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import (
    AuditFacts,
    CommittedOffsets,
    Observation,
    Problem,
    identity_of,
    is_paused,
    policy_of,
)
from delaytopic_operator.observe.offsets_cache import OffsetsCache
from delaytopic_operator.observe.rollouts import RolloutTracker
from delaytopic_operator.observe.told_verdicts import ToldVerdicts
from delaytopic_operator.observe.topics import TopicsObserver, TopicsSeen, problem_of
from delaytopic_operator.resources.audits import cron_job_of, report_address
from delaytopic_operator.scaling.signals import gather

NOTHING_KNOWN: Final = TopicsSeen()


class Observer:
    """Thread-safe; what it remembers is lost with the process, and only saves learning again."""

    def __init__(
        self,
        cluster: ClusterObserver,
        topics: TopicsObserver,
        store: ObjectCache,
        config: OperatorConfig,
        told: ToldVerdicts,
    ) -> None:
        """Take the observers of Kubernetes and of Kafka; `told` has heard audits."""
        self._cluster = cluster
        self._topics = topics
        self._store = store
        self._config = config
        self._told = told
        self._lock = Lock()
        self._unreachable_since: dict[Key, int] = {}
        self._offsets = OffsetsCache()
        self._rollouts = RolloutTracker(store)
        self._relays: dict[Key, frozenset[str]] = {}

    def observe(self, key: Key, now_ms: int) -> Observation:
        """Observe one DelayTopic; raises `OperatorError` when the API server cannot be asked."""
        route, fleet = self._cluster.observe(key, now_ms)
        seen = Observation(key, now_ms, self._config, route, fleet)
        if seen.route.document is None:
            self._topics.forget(seen.key)
        if is_paused(seen):
            return seen
        seen = self._with_fleet(seen)
        return self._with_committed(self._with_unreachable(self._with_gone_relays(seen)))

    def judged_by(self, key: Key) -> Hashable:
        """Return what a DelayTopic and its objects are judged by, as far as it is watched: to be asked before a look,
        and the same while nothing of it has changed.
        """
        return self._cluster.judged_by(key)

    def rollouts(self) -> Rollouts:
        """Return which relays start anew, or should have."""
        return self._rollouts.rollouts()

    def look_again(self, seen: Observation, *, in_full: bool) -> Observation | None:
        """Look at pages and offsets alone, where all else is as in this former look; None where it is not.

        With `in_full`, see also what status and metrics are made of, and what is asked for seldom: the document, what
        it shares with others, and who else is in the relays' group.

        Raises `OperatorError` when the API server cannot be asked.
        """
        accepted = seen.route.accepted
        assert accepted is not None
        if not self._cluster.is_as_before(seen) or self._audit(seen) != (seen.audit.served, seen.audit.failure):
            return None
        topics = self._topics.observe(seen, accepted, members=in_full)
        if topics.problem is not None or self._learn_cluster(seen, topics):
            return None
        fleet = _with_signals(seen, self._cluster.pages(seen), topics)
        seen = replace(seen, fleet=fleet, topics=topics.topics, backend=topics.backend)
        if self._offsets.is_due(seen):
            return None
        return self._with_document(seen) if in_full else seen

    def _with_document(self, seen: Observation) -> Observation | None:
        """Add the document as it is now, and what it shares with others; None where it has gone."""
        document = self._store.get(DELAY_TOPIC, *seen.key)
        return self._with_shared(replace(seen, route=replace(seen.route, document=document))) if document else None

    def refreshed(self, seen: Observation) -> Observation:
        """Observe the topics anew: nothing is changed on the word of a minute ago."""
        if seen.route.accepted is None or seen.topics is None:
            return seen
        topics = self._topics.observe(seen, seen.route.accepted, fresh=True)
        self._learn_cluster(seen, topics)
        route = replace(seen.route, verdict=self._cluster.validated(seen))
        return replace(seen, route=route, topics=topics.topics, topics_problem=topics.problem)

    def _learn_cluster(self, seen: Observation, topics: TopicsSeen) -> bool:
        """Remember what Kafka calls itself; return whether that is news.

        Whatever its address, it may be a cluster whose topics are others'.
        """
        cluster_id = topics.topics.cluster_id if topics.topics is not None else None
        if cluster_id is None or (seen.topics is not None and seen.topics.cluster_id == cluster_id):
            return False
        return self._cluster.learn(seen.key, cluster_id)

    def note_backup(self, seen: Observation) -> None:
        """Remember that it was read, now that it is written down."""
        if seen.committed is not None:
            self._offsets.was_read(seen.key, seen.now_ms, kept=seen.committed.problem is None)

    def note_relays(self, seen: Observation) -> None:
        """Remember the relays that there are, now that those that are gone were seen to."""
        living = seen.fleet.living
        with self._lock:
            if living:
                self._relays[seen.key] = living
            else:
                self._relays.pop(seen.key, None)

    def _with_gone_relays(self, seen: Observation) -> Observation:
        with self._lock:
            before = self._relays.get(seen.key, frozenset())
        return replace(seen, fleet=replace(seen.fleet, gone=before - seen.fleet.living))

    def unreachable(self, key: Key, now_ms: int) -> None:
        """Remember that a backlog could not be removed, from now on at the latest."""
        with self._lock:
            self._unreachable_since.setdefault(key, now_ms)

    def _with_fleet(self, seen: Observation) -> Observation:
        topics, accepted = NOTHING_KNOWN, seen.route.accepted
        if accepted is not None:
            seen = self._cluster.with_secrets(seen, accepted)
            if seen.route.secrets_problem is None:
                topics = self._topics.observe(seen, accepted)
                if self._learn_cluster(seen, topics):
                    seen = replace(seen, route=replace(seen.route, verdict=self._cluster.validated(seen)))
        fleet = replace(self._cluster.pages(seen), partitions=topics.partitions or _known_partitions(seen))
        return replace(
            self._with_shared(seen),
            fleet=_with_signals(seen, fleet, topics),
            topics=topics.topics,
            topics_problem=topics.problem,
            backend=topics.backend,
        )

    def _with_shared(self, seen: Observation) -> Observation:
        """Add whose relays start anew, and what the audit that it is part of has told."""
        served, failure = self._audit(seen)
        written = seen.route.record.audited if seen.route.record is not None else None
        slo = last_verdict(seen.route.status, seen.now_ms, served, written)
        if slo is not None:
            slo = slo.with_report(report_address(seen.key, self._config.audit, slo.slo.get("report")))
        slo = slo if failure is None else without_audit(slo, failure)
        audit = AuditFacts(slo, served, failure, self._audit_job(seen))
        return replace(seen, audit=audit, route=replace(seen.route, rollouts=self.rollouts()))

    def _audit(self, seen: Observation) -> tuple[VerdictMessage | None, str | None]:
        """Return the verdict that the audit has served last, and why the audit cannot be set up."""
        if seen.route.accepted is None:
            return None, None
        audit = audit_key(seen.key.namespace, seen.route.accepted.settings.class_name)
        return self._told.message_of(audit, seen.key), self._told.failure_of(audit)

    def _audit_job(self, seen: Observation) -> Mapping[str, Any] | None:
        if seen.route.accepted is None:
            return None
        namespace = identity_of(seen, seen.route.accepted).namespace
        return self._store.get(CRON_JOB, namespace, cron_job_of(seen.route.accepted.settings, self._config))

    def _with_unreachable(self, seen: Observation) -> Observation:
        """Add since when an object that goes cannot be accounted for."""
        removes = (
            seen.route.is_going and policy_of(seen) is DeletionPolicy.DELETE and not seen.route.goes_with_namespace
        )
        known = not removes and (
            (seen.fleet.signals is not None and seen.fleet.signals.complete) or seen.fleet.complete
        )
        with self._lock:
            if known or (seen.route.document is not None and not seen.route.is_going):
                self._unreachable_since.pop(seen.key, None)
                return seen
            if not removes:
                self._unreachable_since.setdefault(seen.key, seen.now_ms)
            since_ms = self._unreachable_since.get(seen.key)
        return replace(seen, route=replace(seen.route, unreachable_since_ms=since_ms))

    def _with_committed(self, seen: Observation) -> Observation:
        """Add what the relays have committed, while there are none: Kafka will forget it."""
        if seen.route.record is None or not self._offsets.is_due(seen):
            return seen
        try:
            connection, values = self._cluster.resolve_connection(seen.route.record, seen.now_ms)
            read = self._topics.committed(seen.route.record, connection, values)
        except OperatorError as error:
            return replace(seen, committed=CommittedOffsets(problem=problem_of(error)))
        if read is not None and is_too_large(read):
            message = f"that of {len(read.partitions)} partitions is too large for a ConfigMap"
            return replace(seen, committed=CommittedOffsets(problem=Problem("OffsetsTooLarge", message)))
        return replace(seen, committed=CommittedOffsets(read))


def _with_signals(seen: Observation, fleet: FleetFacts, topics: TopicsSeen) -> FleetFacts:
    """Add what scaling reads of pages and offsets."""
    if seen.route.accepted is None or fleet.deployment is None:
        return fleet
    delay = seen.route.accepted.settings.schedule.fixed_delay
    statuses = [page.status for page in fleet.pages if page.status is not None]
    created = {pod["metadata"]["name"]: instant_ms(pod["metadata"]["creationTimestamp"]) for pod in fleet.pods}
    delay_ms = delay.ms if delay is not None else None
    return replace(fleet, signals=gather(statuses, topics.offsets, seen.now_ms, pods=created, delay_ms=delay_ms))


def _known_partitions(seen: Observation) -> int | None:
    """Return the number of source partitions as it was seen last."""
    if seen.route.record is not None and seen.route.record.source_partitions is not None:
        return seen.route.record.source_partitions
    count = (seen.route.status.get("source") or {}).get("partitions")
    return int(count) if count is not None else None
