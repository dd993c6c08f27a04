"""The DelayTopics of a cluster that a gateway serves, and the pods that it takes for relays."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_gateway.cluster.served_topics import is_accepted, page_url, served_topics

KAFKA = "kafka-1:9092,kafka-2:9092"


def delay_class(name: str = "standard", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"connection": {"bootstrapServers": KAFKA}, **spec}}


def delay_topic(name: str = "reminders", accepted: str = "True", seen: int = 3, **spec: Any) -> dict[str, Any]:
    condition = {
        "type": "PolicyAccepted",
        "status": accepted,
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-11-24T00:00:00Z",
        "observedGeneration": seen,
    }
    topics = {"source": {"topic": f"shop.{name}.delayed"}, "target": {"topic": f"shop.{name}"}}
    return {
        "metadata": {"namespace": "shop", "name": name, "generation": 3},
        "spec": {"delayClassName": "standard", **topics, **spec},
        "status": {"conditions": [condition]},
    }


def test_what_the_operator_has_accepted_is_served_as_it_resolves_it() -> None:
    found = served_topics(
        [delay_topic("b"), delay_topic("a")], [delay_class()], "kafka-2:9092, KAFKA-1:9092", "platform"
    )

    assert [(each.full_name, each.source, each.dead_letter, place) for each, place in found.namespaces.items()] == [
        ("shop/a", "shop.a.delayed", "shop.a.delayed.dlq", "platform"),
        ("shop/b", "shop.b.delayed", "shop.b.delayed.dlq", "platform"),
    ]
    assert (found.elsewhere, found.refused) == (0, 0)


def test_relays_are_sought_where_the_class_lets_them_run() -> None:
    found = served_topics([delay_topic()], [delay_class(relayNamespace="relays")], KAFKA, "platform")

    assert [*found.namespaces.values()] == ["relays"]


@pytest.mark.parametrize(
    "document",
    [
        delay_topic(accepted="False"),
        delay_topic(accepted="Unknown"),
        delay_topic(seen=2),
        delay_topic() | {"status": {}},
        delay_topic(delayClassName="another"),
        delay_topic(source={"topic": "bank.payments"}),
        {"metadata": {"namespace": "shop", "name": "x"}, "spec": {"source": 1}},
    ],
    ids=["refused", "unknown", "changed since", "not seen", "no such class", "a topic of others", "of another version"],
)
def test_what_the_operator_has_not_accepted_as_it_is_now_is_not_served(document: dict[str, Any]) -> None:
    found = served_topics([document], [delay_class()], KAFKA, "platform")

    assert (len(found.namespaces), found.elsewhere, found.refused) == (0, 0, 1)


def test_another_kafka_is_not_served_and_counted() -> None:
    found = served_topics([delay_topic()], [delay_class()], "kafka-1:9092", "platform")

    assert (len(found.namespaces), found.elsewhere, found.refused) == (0, 1, 0)


def test_a_connection_of_its_own_gets_nothing_by_the_login_of_the_gateway() -> None:
    document = delay_topic(connection={"bootstrapServers": KAFKA}, source={"topic": "bank.payments"})
    del document["spec"]["delayClassName"]

    found = served_topics([document], [delay_class()], KAFKA, "platform")

    assert (len(found.namespaces), found.elsewhere, found.refused) == (0, 1, 0)


def test_a_condition_without_a_generation_is_no_acceptance() -> None:
    document = delay_topic()
    del document["status"]["conditions"][0]["observedGeneration"]

    assert not is_accepted(document)


@pytest.mark.parametrize(
    ("status", "port", "url"),
    [
        ({"podIP": "10.1.2.3", "phase": "Running"}, {"name": "http", "containerPort": 9000}, "http://10.1.2.3:9000"),
        ({"podIP": "10.1.2.3", "phase": "Running"}, {"containerPort": 9000}, "http://10.1.2.3:8080"),
        ({"podIP": "fd00::7", "phase": "Pending"}, {"name": "http", "containerPort": 9000}, "http://[fd00::7]:9000"),
        ({"podIP": "10.1.2.3", "phase": "Failed"}, {}, None),
        ({"podIP": "10.1.2.3", "phase": "Succeeded"}, {}, None),
        ({"phase": "Pending"}, {}, None),
        (None, {}, None),
    ],
)
def test_the_pages_of_a_relay_are_at_the_address_of_its_pod(status: Any, port: Any, url: str | None) -> None:
    pod = {"metadata": {"name": "r"}, "spec": {"containers": [{"ports": [port]}] if port else []}, "status": status}

    assert page_url(pod) == url
