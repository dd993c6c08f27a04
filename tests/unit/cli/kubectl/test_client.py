"""Tests of what kubectl prints when something is wrong, as one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed, failure


@pytest.mark.parametrize(
    ("said", "sentence", "reason"),
    [
        (
            'Error from server (NotFound): delaytopics.delaytopic.dev "x" not found\n',
            'the cluster says: delaytopics.delaytopic.dev "x" not found',
            "NotFound",
        ),
        (
            'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods"',
            'the cluster says: pods is forbidden: User "ann" cannot list resource "pods"',
            "Forbidden",
        ),
        (
            'error: the server doesn\'t have a resource type "delaytopics"',
            "this cluster knows no DelayTopics: delaytopic is not installed there, or the context is another cluster's",
            "NotInstalled",
        ),
        (
            "E1121 21:37:32.1 99 memcache.go:265] couldn't get current server API group list\n"
            "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
            "the cluster does not answer: The connection to the server localhost:8080 was refused - did you specify "
            "the right host or port?",
            "Unreachable",
        ),
        ('error: context "x" does not exist', 'kubectl says: context "x" does not exist', ""),
        (
            "E1121 21:37:32.1 99 portforward.go:424] refused",
            "kubectl says: E1121 21:37:32.1 99 portforward.go:424] refused",
            "",
        ),
        ("", "kubectl says: nothing, and failed", ""),
    ],
)
def test_an_error_is_one_sentence_and_a_word(said: str, sentence: str, reason: str) -> None:
    found = failure(said)

    assert (str(found), found.reason) == (sentence, reason)


def test_options_are_handed_on_to_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))

    printed = Kubectl.of("east", "/tmp/config", "shop").run("get", "delaytopics")

    assert printed == "--context=east --kubeconfig=/tmp/config --namespace=shop --request-timeout=30s get delaytopics\n"


def test_without_kubectl_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(KubectlFailed, match="there is no kubectl on the PATH; install it first"):
        Kubectl().run("version")
