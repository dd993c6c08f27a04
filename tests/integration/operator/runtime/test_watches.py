"""The watches and the Events against a real API server, within this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.support.operator.documents import config_map, delay_topic
from tests.support.relay.process import wait_for

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.indexers import MANAGED, NAME_LABEL, NAMESPACE_LABEL
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Place
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.runtime import watched
from delaytopic_operator.runtime.handlers import Watches

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


@pytest.fixture
def woken() -> list[Key]:
    """The keys that were put."""
    return []


@pytest.fixture
def watch(control_plane: ControlPlane, woken: list[Key]) -> Iterator[Callable[..., tuple[Watches, ObjectCache]]]:
    running: list[Watches] = []

    def start(
        namespace: str, login_lasts: timedelta = timedelta(minutes=10), tenants: Sequence[str] = ()
    ) -> tuple[Watches, ObjectCache]:
        def put(keys: Iterable[Key]) -> None:
            woken.extend(keys)

        def ignore(keys: Iterable[Key]) -> None:
            pass

        topics = [namespace, *tenants]
        config = OperatorConfig(namespace=namespace, watch_namespaces=topics, relay_namespaces=[])
        store, login = ObjectCache(namespace, topics), ClusterLogin(control_plane.kubeconfig)
        others = {"enqueue_classes": ignore, "enqueue_audits": ignore, "enqueue_recurring": ignore}
        running.append(Watches(login, store, put, config, login_lasts, **others))
        running[-1].start()
        return running[-1], store

    yield start
    for watches in running:
        watches.stop(20)


def test_events_go_on_when_the_login_has_to_be_renewed(
    watch: Callable[..., tuple[Watches, ObjectCache]], kube: KubeApi, namespace: str, woken: list[Key]
) -> None:
    kube.apply(delay_topic(namespace, "first"), "people")
    watches, store = watch(namespace, timedelta(seconds=1))
    wait_for(lambda: Key(namespace, "first") in woken)
    began_ms = watches.signs_of_life_ms()[Place("delaytopics", namespace)]
    wait_for(lambda: epoch_ms() > began_ms + 2_000)

    kube.apply(delay_topic(namespace, "second"), "people")

    wait_for(lambda: Key(namespace, "second") in woken)
    assert store.get(kinds.DELAY_TOPIC, namespace, "second") is not None
    assert watches.signs_of_life_ms()[Place("delaytopics", namespace)] > began_ms
    assert watches.loop_lag_ms() < 60_000


def test_every_watch_of_each_namespace_shows_that_it_lives_though_nothing_happens(
    watch: Callable[..., tuple[Watches, ObjectCache]], namespace: str, make_namespace: MakeNamespace
) -> None:
    started_ms = epoch_ms()

    tenant = make_namespace()
    watches, _ = watch(namespace, timedelta(minutes=10), tenants=[tenant])

    signs = watches.signs_of_life_ms()
    topics = {Place("delaytopics", place) for place in (namespace, tenant)}
    made = {Place(kind.plural, namespace) for kind in watched.MADE}
    recurring = {Place("recurringrecords", place) for place in (namespace, tenant)}
    assert set(signs) == {Place("delayclasses", None), *topics, *recurring, *made}
    wait_for(lambda: all(at_ms > max(started_ms, signs[name]) for name, at_ms in watches.signs_of_life_ms().items()))


def test_of_a_tenants_namespace_delay_topics_are_heard_and_its_own_objects_are_not(
    watch: Callable[..., tuple[Watches, ObjectCache]], kube: KubeApi, namespace: str, make_namespace: MakeNamespace
) -> None:
    tenant = make_namespace()
    owner = {NAMESPACE_LABEL: tenant, NAME_LABEL: "reminders"}

    def labelled(place: str) -> dict[str, Any]:
        document = config_map(place)
        return document | {"metadata": {**document["metadata"], "labels": {**MANAGED, **owner}}}

    _, store = watch(namespace, tenants=[tenant])
    for document in (labelled(tenant), labelled(namespace), delay_topic(tenant)):
        kube.apply(document, "people")

    wait_for(lambda: store.get(kinds.DELAY_TOPIC, tenant, "reminders") and store.list(kinds.CONFIG_MAP, namespace))
    assert [each["metadata"]["namespace"] for each in store.list(kinds.CONFIG_MAP)] == [namespace]


def test_what_happens_is_an_event_and_what_happens_again_is_counted(kube: KubeApi, namespace: str) -> None:
    topic = kube.apply(delay_topic(namespace), "people")
    recorder = EventRecorder(kube, "operator-1")
    recorder.start()

    for _ in range(3):
        recorder.record(topic, "TopicExists", "topic reminders exists already", warning=True)
    recorder.stop(10)

    (event,) = kube.list(kinds.EVENT, namespace)
    assert (event["reason"], event["type"], event["series"]["count"]) == ("TopicExists", "Warning", 3)
    assert event["regarding"]["uid"] == topic["metadata"]["uid"]


def test_events_that_cannot_be_written_hold_up_nobody(kube: KubeApi, namespace: str) -> None:
    topic = delay_topic("nowhere") | {"metadata": {"namespace": "nowhere", "name": "reminders", "uid": "u"}}
    there = kube.apply(delay_topic(namespace), "people")
    recorder = EventRecorder(kube, "operator-1")
    recorder.start()

    recorder.record(topic, "TopicCreated", "nobody hears of it")
    recorder.record(there, "TopicCreated", "made topic reminders")
    recorder.stop(10)

    assert [event["note"] for event in kube.list(kinds.EVENT, namespace)] == ["made topic reminders"]
