"""Tests of when a live object counts as the wanted one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delaytopic_operator.decide.drift import drift

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
FIELDS = st.sampled_from(["spec", "ports", "env", "name", "limits", "items"])
DOCUMENTS = st.dictionaries(
    FIELDS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
        max_leaves=10,
    ),
    max_size=3,
)

SAME: dict[str, tuple[Any, Any]] = {
    "a default of the server": ({"a": 1}, {"a": 1, "b": 2}),
    "a default inside a list's item": ({"ports": [{"port": 53}]}, {"ports": [{"port": 53, "protocol": "TCP"}]}),
    "nothing, and an empty map": ({"labels": {}}, {}),
    "nothing, and an empty list": ({"args": []}, {}),
    "nothing, and null": ({"args": None}, {}),
    "nothing, and no text": ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
    "an empty map, and one with defaults": ({"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}),
    "nothing, deep inside": ({"a": {"b": {"c": None}}}, {}),
    "a quantity in other words": ({"limits": {"memory": "1024Mi"}}, {"limits": {"memory": "1Gi"}}),
    "a quantity as a number": ({"requests": {"cpu": 2}}, {"requests": {"cpu": "2"}}),
    "a quantity with a fraction": ({"requests": {"cpu": "0.5"}}, {"requests": {"cpu": "500m"}}),
    "a quantity with an exponent": ({"limits": {"x": "1e3"}}, {"limits": {"x": "1k"}}),
    "the size of a volume": ({"emptyDir": {"sizeLimit": "1Gi"}}, {"emptyDir": {"sizeLimit": "1024Mi"}}),
    "a container of somebody else": (
        {"containers": [{"name": "relay"}]},
        {"containers": [{"name": "sidecar"}, {"name": "relay", "image": "x"}]},
    ),
    "a mount of somebody else": (
        {"volumeMounts": [{"name": "a", "mountPath": "/a"}]},
        {"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]},
    ),
    "an item of a list from the API server": ({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, {}),
}
DIFFERENT: dict[str, tuple[Any, Any, list[str]]] = {
    "another value": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b"]),
    "a missing field": ({"a": {"b": 1}}, {"a": {}}, ["a.b"]),
    "a missing object": ({"a": {"b": 1}}, {}, ["a.b"]),
    "an absent false is not false": ({"automountServiceAccountToken": False}, {}, ["automountServiceAccountToken"]),
    "zero is not nothing": ({"replicas": 0}, {}, ["replicas"]),
    "one is not true": ({"a": 1}, {"a": True}, ["a"]),
    "a number is not its text": ({"port": 8080}, {"port": "8080"}, ["port"]),
    "a share is not a number": ({"maxSurge": "25%"}, {"maxSurge": 25}, ["maxSurge"]),
    "an item too many": ({"args": ["a"]}, {"args": ["a", "b"]}, ["args"]),
    "an item where there is to be none": ({"egress": []}, {"egress": [{}]}, ["egress"]),
    "another order": ({"args": ["a", "b"]}, {"args": ["b", "a"]}, ["args[0]", "args[1]"]),
    "a map in a list": ({"to": [{"at": [{"n": 1}]}]}, {"to": [{"at": [{"n": 2}]}]}, ["to[0].at[0].n"]),
    "a missing item with a name": ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}]}, ["env"]),
    "names in another order": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]},
        {"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]},
        ["env[0].name", "env[0].value", "env[1].name", "env[1].value"],
    ),
    "another quantity": ({"limits": {"cpu": "250m"}}, {"limits": {"cpu": "300m"}}, ["limits.cpu"]),
    "no quantity at all": ({"limits": {"cpu": "250m"}}, {"limits": {"cpu": "a few"}}, ["limits.cpu"]),
    "text that looks like a quantity": ({"data": {"a": "1024Mi"}}, {"data": {"a": "1Gi"}}, ["data.a"]),
    "a name with dots": ({"data": {"relay.yaml": "a"}}, {"data": {"relay.yaml": "b"}}, ['data["relay.yaml"]']),
    "an object in the place of text": ({"a": "x"}, {"a": {"b": "x"}}, ["a"]),
    "text in the place of an object": ({"a": {"b": "x"}}, {"a": "x"}, ["a"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_the_same_in_other_words_is_no_drift(case: str) -> None:
    desired, live = SAME[case]

    assert drift(desired, live) == []


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_is_told_by_its_path(case: str) -> None:
    desired, live, paths = DIFFERENT[case]

    assert drift(desired, live) == paths


@given(DOCUMENTS)
def test_a_document_never_drifts_from_itself(document: dict[str, Any]) -> None:
    assert drift(document, document) == []


@given(DOCUMENTS, DOCUMENTS)
@example({"env": [{"name": None}, {"name": []}]}, {})
def test_what_others_write_beside_is_no_drift(document: dict[str, Any], others: dict[str, Any]) -> None:
    assert drift(document, {**others, **document}) == []
