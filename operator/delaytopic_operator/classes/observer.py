"""Edge: looks at a DelayClass, at who uses it, and at what it names: Secrets, Kafka and Redis."""

from __future__ import annotations

from dataclasses import replace

from delaytopic_api import DelayClass
from delaytopic_operator.classes.plan import ClassObservation
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kafka.admin import KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import TRUE, UNKNOWN
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.observation import Problem
from delaytopic_operator.observe.redis import RedisObserver
from delaytopic_operator.observe.topics import problem_of
from delaytopic_operator.rules.delay_class import check_class
from delaytopic_operator.rules.validate import Refusal


class ClassObserver:
    """Thread-safe."""

    def __init__(
        self,
        cluster: ClusterObserver,
        kafka: KafkaClusters,
        store: ObjectCache,
        config: OperatorConfig,
    ) -> None:
        """Take the observer of Kubernetes, and the connections that DelayTopics use, too."""
        self._cluster = cluster
        self._kafka = kafka
        self._redis = RedisObserver()
        self._store = store
        self._config = config

    def observe(self, name: str, now_ms: int) -> ClassObservation:
        """Observe one DelayClass. What cannot be read or reached is a problem, and no error."""
        document = self._store.get(kinds.DELAY_CLASS, None, name)
        if document is None:
            return ClassObservation(name, now_ms, self._config, None)
        seen = ClassObservation(name, now_ms, self._config, document, self._cluster.users_of_class(name))
        verdict = check_class(document, self._cluster.all_classes(), self._config)
        # Of a class that others tell of, the servers are not this operator's to ask.
        problem = self._problem(verdict, now_ms) if seen.writes_status else None
        return replace(seen, problem=problem)

    def _problem(self, verdict: DelayClass | Refusal, now_ms: int) -> Problem | None:
        if isinstance(verdict, Refusal):
            return Problem(verdict.reason, verdict.message)
        return self._connection_problem(verdict, now_ms)

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
