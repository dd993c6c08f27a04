"""Tests of what an answer of the API server means: rows of code, Status and the operator's error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delaytopic_operator import errors
from delaytopic_operator.kube.errors import Call, KindNotServed, ObjectGone, refusal
from delaytopic_operator.model import kinds

CALL = Call("patch", kinds.DEPLOYMENT, "shop", "relay")
RBAC = (
    'deployments.apps "relay" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments" '
    'in API group "apps" in the namespace "shop"'
)
TERMINATING: dict[str, Any] = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}


def status(message: str, **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, "details": details}).encode()


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (400, status("bad"), errors.ObjectRejected),
        (401, status("Unauthorized"), errors.ApiServerForbidden),
        (403, status(RBAC), errors.ApiServerForbidden),
        (403, status('pods "x" is forbidden: exceeded quota: q'), errors.ObjectRejected),
        (403, status('pods "x" is forbidden: violates PodSecurity "restricted"'), errors.ObjectRejected),
        (403, status("unable to create new content", **TERMINATING), errors.NamespaceTerminating),
        (404, status('namespaces "shop" not found', kind="namespaces"), errors.NamespaceTerminating),
        (404, status('deployments.apps "relay" not found', kind="deployments"), ObjectGone),
        (404, b"404 page not found\n", KindNotServed),
        (409, status("the object has been modified"), errors.Conflict),
        (413, b"too large", errors.ObjectRejected),
        (422, status("Deployment.apps is invalid: spec.replicas"), errors.ObjectRejected),
        (429, status("too many"), errors.ApiServerUnavailable),
        (500, status("etcdserver: request timed out"), errors.ApiServerUnavailable),
        (503, b"<html>no upstream</html>", errors.ApiServerUnavailable),
    ],
)
def test_each_answer_has_its_error(code: int, body: bytes, error: type[errors.OperatorError]) -> None:
    assert type(refusal(CALL, code, {}, body)) is error


def test_the_sentence_says_what_was_asked_for_and_what_the_answer_was() -> None:
    assert str(refusal(CALL, 422, {}, status("spec.replicas is wrong"))) == (
        "patch deployments shop/relay: spec.replicas is wrong"
    )


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_the_api_server_may_ask_to_come_back_later(header: str, seconds: float | None) -> None:
    error = refusal(CALL, 429, {"Retry-After": header}, b"")

    assert isinstance(error, errors.ApiServerUnavailable)
    assert error.retry_after_s == seconds


def test_an_answer_that_repeats_a_whole_object_is_cut() -> None:
    assert len(str(refusal(CALL, 422, {}, status("x" * 100_000)))) < 1_100


def test_calls_speak_the_words_of_rbac() -> None:
    calls = [
        Call("list", kinds.DELAY_CLASS),
        Call("patch", kinds.DELAY_TOPIC, "shop", "reminders", "status"),
    ]

    assert [(call.verb, call.resource, str(call)) for call in calls] == [
        ("list", "delayclasses", "list delayclasses"),
        ("patch", "delaytopics/status", "patch delaytopics/status shop/reminders"),
    ]
