"""All that is made for a DelayTopic, as whole documents."""

from __future__ import annotations

import pytest
from tests.unit.operator.resources.golden import EXAMPLES, GOLDEN, example, golden_documents

from delaytopic_api import load_relay_config
from delaytopic_operator.model.kinds import kind_of


@pytest.mark.parametrize("name", GOLDEN)
def test_the_objects_are_as_they_are_in_the_file(name: str) -> None:
    # After an intended change: python -m tests.unit.operator.resources.golden
    assert example(name).documents() == golden_documents(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_input_makes_the_same_documents_and_changes_none_of_it(name: str) -> None:
    given = example(name)

    first = given.documents()

    assert given.documents() == first
    assert given == example(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_pods_need_is_applied_before_what_makes_pods(name: str) -> None:
    kinds = [str(kind_of(document).name) for document in example(name).relay_objects()]

    assert kinds[:2] == ["ServiceAccount", "ConfigMap"]
    assert kinds[-1] == "Deployment"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_relay_takes_the_document_that_it_is_started_with(name: str) -> None:
    text = example(name).relay_object("ConfigMap")["data"]["relay.yaml"]

    config = load_relay_config(text)

    metadata = example(name).topic.metadata
    assert (config.namespace, config.name) == (metadata.namespace, metadata.name)


def test_with_a_class_the_relays_run_in_its_namespace_and_belong_to_nobody() -> None:
    given = example("class")

    assert {document["metadata"]["namespace"] for document in given.documents()} == {"delay-relays"}
    assert not [document for document in given.relay_objects() if "ownerReferences" in document["metadata"]]


def test_with_an_inline_connection_the_relays_run_beside_the_delay_topic_and_go_with_it() -> None:
    given = example("inline")

    owners = [document["metadata"]["ownerReferences"] for document in given.documents()]
    assert {document["metadata"]["namespace"] for document in given.documents()} == {"solo"}
    assert all([(owner["kind"], owner["name"]) for owner in each] == [("DelayTopic", "reminders")] for each in owners)


def test_without_a_number_the_number_of_relays_is_left_to_others() -> None:
    deployment = example("inline").relay_objects(replicas=None)[-1]
    stopped = example("inline").relay_objects(replicas=0)[-1]

    assert "replicas" not in deployment["spec"]
    assert stopped["spec"]["replicas"] == 0
