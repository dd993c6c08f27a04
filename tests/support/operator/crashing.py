"""Calls that end a process: where, is a number. For tests that let an operator die at each of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import TopicPartition

from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka.client import KafkaClient
from delaytopic_operator.kube.errors import Call
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.transport import KubeTransport

T = TypeVar("T")
READS = frozenset({"get", "list"})
ASKS = ("describe", "tell", "read")


class Crashed(BaseException):
    """The process is no more; nothing catches that."""


class CrashPoint:
    """Numbers the calls of a process from 1, and ends it before or after one of them. `at` None: never."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self.calls: list[str] = []
        self._at = at
        self._after = after

    def call(self, what: str, do: Callable[[], T]) -> T:
        """Do it, if the process lives long enough."""
        self.calls.append(what)
        mine = len(self.calls) == self._at
        if mine and not self._after:
            raise Crashed(what)
        answer = do()
        if mine:
            raise Crashed(what)
        return answer

    @property
    def writes(self) -> list[str]:
        """Return what was to be changed."""
        return [what for what in self.calls if is_write(what)]


class Meddling(CrashPoint):
    """Something else happens before call `at`, and the process lives on."""

    def __init__(self, at: int, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._number = at
        self._meddle = meddle

    def call(self, what: str, do: Callable[[], T]) -> T:
        """Do it, maybe after what nobody expected."""
        if len(self.calls) + 1 == self._number:
            self._meddle()
        return super().call(what, do)


def is_write(what: str) -> bool:
    """Return whether a call changes anything."""
    return what.split()[1] not in READS | set(ASKS)


class CrashingTransport(KubeTransport):
    """To a real API server."""

    def __init__(self, login: ClusterLogin, point: CrashPoint) -> None:
        super().__init__(login, lambda call, code, seconds: None)
        self._point = point

    def send(self, call: Call, deadline_s: float, **how: Any) -> dict[str, Any]:
        return self._point.call(
            f"kube {call.verb} {call.kind.plural} {call.name or ''} {call.subresource or ''}".rstrip(),
            lambda: super(CrashingTransport, self).send(call, deadline_s, **how),
        )


class CrashingClient(KafkaClient):
    """To a real Kafka."""

    def __init__(self, settings: Mapping[str, str], point: CrashPoint) -> None:
        super().__init__(settings, lambda what, result, seconds: None)
        self._point = point

    def ask(
        self, what: str, question: Callable[[float], Mapping[Any, Future[Any]]], *, vital: bool = True
    ) -> dict[Any, Any]:
        return self._point.call(f"kafka {what}", lambda: super(CrashingClient, self).ask(what, question, vital=vital))

    def ask_for_group(self, what: str, group_id: str, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return self._point.call(
            f"kafka {what}", lambda: super(CrashingClient, self).ask_for_group(what, group_id, partitions)
        )


class CrashingClusters(KafkaClusters):
    """The same for all connections."""

    def __init__(self, point: CrashPoint) -> None:
        super().__init__()
        self._point = point

    def _connect(self, settings: Mapping[str, str]) -> KafkaCluster:
        return KafkaCluster(CrashingClient(settings, self._point))
