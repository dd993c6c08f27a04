from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.paths import DATA

from delaytopic_api import DelayClass, InvalidDocument, load_document, load_documents
from delaytopic_api.documents import AccessSpec

API_DATA = DATA / "api"


def class_document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": "standard"},
        "spec": {"connection": {"bootstrapServers": "kafka:9092"}} | spec,
    }


def refusal_of(document: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        load_document(document, "DelayClass standard")
    return str(refused.value).splitlines()


def test_a_class_needs_a_connection_and_nothing_else() -> None:
    delay_class = load_document(class_document())

    assert isinstance(delay_class, DelayClass)
    assert delay_class.spec.backend.type == "KafkaBuckets"


def test_a_class_that_says_nothing_of_access_gives_each_namespace_its_own_topics_and_none_to_adopt() -> None:
    delay_class = load_document(class_document())

    assert isinstance(delay_class, DelayClass)
    assert delay_class.spec.access == AccessSpec(
        namespace_selector=None, source_topics=["{namespace}.*"], target_topics=["{namespace}.*"], adopt_topics=[]
    )


def test_a_class_is_the_default_when_its_annotation_says_so() -> None:
    [marked] = load_documents((API_DATA / "accepted_delay_class.yaml").read_text())
    unmarked = load_document(class_document())

    assert isinstance(marked, DelayClass)
    assert isinstance(unmarked, DelayClass)
    assert (marked.is_default, unmarked.is_default) == (True, False)


def test_every_field_of_a_written_class_is_what_the_author_wrote() -> None:
    text = (API_DATA / "accepted_delay_class.yaml").read_text()

    [loaded] = load_documents(text)

    assert loaded.to_document()["spec"] == yaml.safe_load(text)["spec"] | {
        "access": yaml.safe_load(text)["spec"]["access"],
    }


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"backend": {"type": "RedisZset"}}, "spec.backend.redis: is required for type RedisZset"),
        (
            {"limits": {"maxDelay": "1h"}, "defaults": {"maxDelay": "2h"}},
            "spec.defaults.maxDelay: is 2h, longer than limits.maxDelay (1h)",
        ),
        (
            {"limits": {"minPrecision": "1s"}, "defaults": {"precision": "500ms"}},
            "spec.defaults.precision: is 500ms, finer than limits.minPrecision (1s)",
        ),
        (
            {"access": {"sourceTopics": ["{tenant}.*"]}},
            'spec.access.sourceTopics[0]: "{tenant}.*" is not a glob of topics; '
            "use the characters of topic names, * for any of them, and {namespace}",
        ),
        (
            {"limits": {"maxDelayTopicsPerNamespace": -1}},
            "spec.limits.maxDelayTopicsPerNamespace: must be at least 0, not -1",
        ),
        (
            {"topicProvisioning": "Strimzi"},
            'spec.topicProvisioning: "Strimzi" is not allowed; allowed: Direct, StrimziKafkaTopic, None',
        ),
        ({"connection": {}}, "spec.connection.bootstrapServers: is required"),
    ],
)
def test_a_class_with_a_mistake_is_refused_with_the_path_and_what_is_allowed(spec: dict[str, Any], line: str) -> None:
    assert refusal_of(class_document(**spec)) == [f"DelayClass standard: {line}"]
