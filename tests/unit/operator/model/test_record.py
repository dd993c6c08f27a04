"""Tests that a record survives its way through a ConfigMap, and is never overwritten unread."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.topic_scenes import NAMESPACE_UID, SOURCE, TARGET, wanted

from delaytopic_api.documents import Ownership
from delaytopic_api.values import BackendType
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import (
    DATA_KEY,
    RecordState,
    Role,
    RouteRecord,
    TopicRecord,
    begin_record,
    continue_record,
    find_record,
    parse_record,
    record_document,
    record_name,
    record_of,
    refusal_to_resume,
)

texts = st.text(min_size=1, max_size=20)
topics = st.builds(
    TopicRecord, name=texts, ownership=st.sampled_from(Ownership), topic_id=st.none() | texts, stranger_id=st.none()
)
records = st.builds(
    RouteRecord,
    namespace=texts,
    name=texts,
    namespace_uid=texts,
    class_name=st.none() | texts,
    group_id=texts,
    source=st.none() | topics,
    target=st.none() | topics,
    dead_letter=st.none() | topics,
    buckets=st.dictionaries(texts, topics, max_size=3),
    backend_type=st.sampled_from(BackendType),
    backend_id=texts,
    state=st.sampled_from(RecordState),
    pending=st.none() | st.integers(0),
    last_due_ms=st.none() | st.integers(0),
)


def a_record() -> RouteRecord:
    source = TopicRecord(name=SOURCE, ownership=Ownership.CREATED, topic_id="id-1")
    target = TopicRecord(name=TARGET, ownership=Ownership.OBSERVED, topic_id="id-2")
    begun = begin_record(wanted().settings, NAMESPACE_UID)
    return begun.with_role(Role.SOURCE, source).with_role(Role.TARGET, target)


OPERATOR = "delaytopic-system"


def document_with(**content: Any) -> dict[str, Any]:
    document = record_document(a_record(), OPERATOR)
    data = json.loads(document["data"][DATA_KEY]) | content
    return {**document, "data": {DATA_KEY: json.dumps(data)}}


@given(records)
def test_a_record_comes_back_as_it_was_written(record: RouteRecord) -> None:
    document = record_document(record, OPERATOR)

    assert parse_record(document) == record


def test_the_config_map_is_found_by_name_and_by_labels() -> None:
    document = record_document(a_record(), OPERATOR)

    assert document["metadata"] == {
        "name": record_name(Key("shop", "reminders")),
        "namespace": OPERATOR,
        "labels": {
            "app.kubernetes.io/managed-by": "delaytopic-operator",
            "app.kubernetes.io/component": "route-record",
            "delaytopic.dev/namespace": "shop",
            "delaytopic.dev/name": "reminders",
        },
    }


def test_names_of_records_cannot_be_made_to_meet() -> None:
    digest = record_name(Key("shop", "reminders")).removeprefix("delay-backlog-")

    assert len(digest) * 4 == 256


def test_the_record_of_another_delay_topic_is_not_used() -> None:
    document = record_document(a_record(), OPERATOR)

    with pytest.raises(RecordUnreadable, match="holds the record of shop/reminders, not of shop/other"):
        record_of(document, Key("shop", "other"))


FORGED = {
    "in a tenant's namespace": {"namespace": "shop"},
    "without the component": {"labels": {"app.kubernetes.io/component": "relay"}},
    "without labels": {"labels": None},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_an_object_that_only_looks_like_a_record_is_not_found(change: dict[str, Any]) -> None:
    document = record_document(a_record(), OPERATOR)
    forged = {**document, "metadata": {**document["metadata"], **change}}

    assert find_record([forged], Key("shop", "reminders"), OPERATOR) is None
    assert find_record([forged, document], Key("shop", "reminders"), OPERATOR) == document


def test_a_record_of_a_newer_operator_is_refused() -> None:
    with pytest.raises(RecordUnreadable, match=r"written by a newer operator \(version 2, this one knows up to 1\)"):
        parse_record(document_with(version=2, source={"shape": "unknown"}))


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"name": "delay-backlog-1"}},
        {"metadata": {"name": "delay-backlog-1"}, "data": {DATA_KEY: "no json"}},
        {"metadata": {"name": "delay-backlog-1"}, "data": {DATA_KEY: "[]"}},
        document_with(version="one"),
        document_with(source="a topic"),
    ],
)
def test_a_damaged_record_is_refused_by_name(document: dict[str, Any]) -> None:
    with pytest.raises(RecordUnreadable, match=r"the ConfigMap delay-backlog-\w+ is no record of a route \(.*restore"):
        parse_record(document)


def test_what_a_newer_operator_of_the_same_form_added_is_kept() -> None:
    record = parse_record(document_with(colour="blue")).with_role(Role.SOURCE, None)

    assert json.loads(record_document(record, "x")["data"][DATA_KEY])["colour"] == "blue"


def test_a_retained_backlog_goes_on_under_the_same_object() -> None:
    retained = a_record().in_state(RecordState.RETAINED, pending=7, last_due_ms=99)

    refusal = refusal_to_resume(retained, wanted().settings, NAMESPACE_UID)
    resumed = continue_record(retained, wanted().settings)

    assert (refusal, resumed) == (None, a_record())


@pytest.mark.parametrize(
    ("spec", "uid", "says"),
    [
        ({}, "uid-of-another", "a backlog of a former namespace shop is still retained"),
        ({"source": {"topic": "shop.other"}}, NAMESPACE_UID, f"whose source is {SOURCE}, not shop.other"),
        ({"target": {"topic": "shop.other"}}, NAMESPACE_UID, f"whose target is {TARGET}, not shop.other"),
    ],
)
def test_a_backlog_is_not_given_to_another_tenant_or_another_route(spec: dict[str, Any], uid: str, says: str) -> None:
    refusal = refusal_to_resume(a_record(), wanted(**spec).settings, uid)

    assert refusal is not None
    assert says in refusal
    assert "delaytopic.dev/discard-retained: delaytopic.shop.reminders" in refusal
