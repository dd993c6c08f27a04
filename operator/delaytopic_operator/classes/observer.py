"""Edge: looks at a DelayClass, at who uses it, and at what it names: Secrets, Kafka and Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from delaytopic_api import DelayClass, DelayTopic, load_document
from delaytopic_api.documents import ConditionType
from delaytopic_api.errors import ApiError
from delaytopic_operator.classes.rules import check_class
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kafka.admin import KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import TRUE, UNKNOWN
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.observe.class_audits import ClassAudits
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.observation import ClassObservation, Problem
from delaytopic_operator.observe.redis import RedisObserver
from delaytopic_operator.observe.topics import problem_of
from delaytopic_operator.resources import is_class_audit
from delaytopic_operator.rules.validate import Refusal


class _Parsed(NamedTuple):
    """A DelayTopic of this version; None for one that cannot be read."""

    version: tuple[str, int | None]
    topic: DelayTopic | None


class ClassObserver:
    """Thread-safe."""

    def __init__(
        self,
        cluster: ClusterObserver,
        kafka: KafkaClusters,
        store: ObjectCache,
        config: OperatorConfig,
        audits: ClassAudits,
    ) -> None:
        """Take the observer of Kubernetes, and the connections that DelayTopics use, too; `audits` hears verdicts."""
        self._cluster = cluster
        self._kafka = kafka
        self._redis = RedisObserver()
        self._store = store
        self._config = config
        self._audits = audits
        self._parsed: dict[str, dict[Key, _Parsed]] = {}

    def observe(self, name: str, now_ms: int) -> ClassObservation:
        """Observe one DelayClass. What cannot be read or reached is a problem, and no error."""
        document = self._store.get(kinds.DELAY_CLASS, None, name)
        if document is None:
            self._audits.forget(name)
            return ClassObservation(name, now_ms, self._config, None)
        seen = ClassObservation(name, now_ms, self._config, document, self._cluster.users_of_class(name))
        verdict = check_class(document, self._cluster.all_classes(), self._config)
        # Of a class that others tell of, the servers are not this operator's to ask.
        problem = self._problem(verdict, now_ms) if seen.writes_status else None
        seen = replace(seen, problem=problem, accepted=verdict if isinstance(verdict, DelayClass) else None)
        return self._with_audit(seen)

    def _problem(self, verdict: DelayClass | Refusal, now_ms: int) -> Problem | None:
        if isinstance(verdict, Refusal):
            return Problem(verdict.reason, verdict.message)
        return self._connection_problem(verdict, now_ms)

    def _with_audit(self, seen: ClassObservation) -> ClassObservation:
        """Add what an audit of all its DelayTopics is about, and hear what the present one says."""
        made = self._cluster.made_for_class(seen.name)
        seen = replace(seen, objects=[each for each in made if each["kind"] != kinds.POD.name])
        if seen.accepted is None or seen.accepted.spec.audit.every is None:
            self._audits.forget(seen.name)
            self._parsed.pop(seen.name, None)
            return replace(seen, secrets_version="")
        pods = [each for each in made if each["kind"] == kinds.POD.name]
        own = [pod for pod in pods if is_class_audit(pod, seen.name, self._config.namespace)]
        self._audits.refresh(seen.name, own, seen.users)
        topics = self._accepted_topics(seen)
        try:
            version = self._cluster.secrets_version_of_class(seen.accepted.spec, seen.now_ms)
        except OperatorError:
            # Whoever writes the status says so; the audit stays as it is.
            version = None
        return replace(seen, topics=topics, secrets_version=version)

    def _accepted_topics(self, seen: ClassObservation) -> list[DelayTopic]:
        before, found = self._parsed.get(seen.name, {}), dict[Key, _Parsed]()
        for key in sorted(seen.users):
            document = self._store.get(kinds.DELAY_TOPIC, *key)
            if document is None or not is_accepted(document):
                continue
            version = (document["metadata"]["uid"], document["metadata"].get("generation"))
            known = before.get(key)
            found[key] = known if known and known.version == version else _Parsed(version, _parsed(document))
        self._parsed[seen.name] = found
        return [each.topic for each in found.values() if each.topic is not None]

    def _connection_problem(self, of_class: DelayClass, now_ms: int) -> Problem | None:
        try:
            values, missing = self._cluster.secrets_of_class(of_class.spec, now_ms)
            if missing is not None:
                return missing
            self._kafka.cluster(kafka_settings(of_class.spec.connection, values)).reach()
        except OperatorError as error:
            return problem_of(error)
        return self._redis_problem(of_class, values, now_ms)

    def _redis_problem(self, of_class: DelayClass, values: SecretValues, now_ms: int) -> Problem | None:
        redis = of_class.spec.backend.redis
        condition = self._redis.ask(redis, values, now_ms) if redis is not None else None
        if condition is None or condition.status is TRUE:
            return None
        return Problem(condition.reason, condition.message, passing=condition.status is UNKNOWN)


def is_accepted(document: Mapping[str, Any]) -> bool:
    """Tell whether a DelayTopic was accepted as it is now: until then it may name what is not its own."""
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata:
        return False
    return any(
        each.get("type") == ConditionType.POLICY_ACCEPTED
        and each.get("status") == TRUE
        and each.get("observedGeneration") == metadata.get("generation")
        for each in (document.get("status") or {}).get("conditions") or ()
    )


def _parsed(document: Mapping[str, Any]) -> DelayTopic | None:
    try:
        topic = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError:
        return None
    return topic if isinstance(topic, DelayTopic) else None
