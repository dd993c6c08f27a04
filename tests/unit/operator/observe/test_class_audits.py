"""Verdicts of the audits of whole classes, asked of what audits serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from delaytopic_cli.audit.serving import Verdicts, serving
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.class_audits import ClassAudits
from delaytopic_operator.observe.relay_pages import RelayPages

AT_MS = 1_795_269_600_000
ANYWHERE = ("127.0.0.1", 0)
ONE, OTHER = Key("shop", "one"), Key("shop", "other")


def verdict(key: Key, at_ms: int) -> dict[str, Any]:
    condition = {"type": "SLOMet", "status": "True", "reason": "Met", "message": "Said."}
    return {
        "delayTopic": str(key),
        "verdict": "Met",
        "generatedAtMs": at_ms,
        "slo": {},
        "condition": {**condition, "lastTransitionTime": instant(at_ms)},
    }


def pod(port: int) -> dict[str, Any]:
    container = {"name": "audit", "ports": [{"name": "http", "containerPort": port}]}
    return {"metadata": {"name": "audit"}, "spec": {"containers": [container]}, "status": {"podIP": "127.0.0.1"}}


class Answer:
    """The memory of an operator that asks an audit."""

    def __init__(self, audits: ClassAudits, verdicts: Verdicts, port: int) -> None:
        self.audits = audits
        self.verdicts = verdicts
        self._pod = pod(port)

    def at_ms(self, *users: Key) -> dict[Key, int]:
        """Ask, and return when the known verdicts on these DelayTopics were given."""
        self.audits.refresh("standard", [self._pod], users)
        told = {key: self.audits.message_of("standard", key) for key in (ONE, OTHER)}
        return {key: message.generated_at_ms for key, message in told.items() if message is not None}


@pytest.fixture
def heard() -> Iterator[Answer]:
    pages, verdicts = RelayPages(), Verdicts(lambda: 0)
    with serving(ANYWHERE, verdicts, 1) as port:
        yield Answer(ClassAudits(pages), verdicts, port)
    pages.close()


def test_the_last_verdict_on_each_delay_topic_is_known(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.verdicts.put(verdict(OTHER, AT_MS))
    first = heard.at_ms(ONE, OTHER)
    heard.verdicts.put(verdict(ONE, AT_MS + 5))

    assert (first, heard.at_ms(ONE, OTHER)) == ({ONE: AT_MS, OTHER: AT_MS}, {ONE: AT_MS + 5, OTHER: AT_MS})


def test_a_verdict_that_comes_later_is_heard_though_its_audit_began_earlier(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE, OTHER)
    heard.verdicts.put(verdict(OTHER, AT_MS - 5))

    assert heard.at_ms(ONE, OTHER) == {ONE: AT_MS, OTHER: AT_MS - 5}


def test_after_a_start_of_the_audits_process_all_it_says_is_heard(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE)
    started_again = Verdicts(lambda: 0)
    started_again.put(verdict(ONE, AT_MS + 5))

    with serving(ANYWHERE, started_again, 1) as port:
        heard.audits.refresh("standard", [pod(port)], {ONE})

    message = heard.audits.message_of("standard", ONE)
    assert message is not None
    assert message.generated_at_ms == AT_MS + 5


def test_nothing_is_heard_of_delay_topics_that_do_not_use_the_class(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.verdicts.put(verdict(OTHER, AT_MS))

    assert heard.at_ms(ONE) == {ONE: AT_MS}


def test_a_delay_topic_that_went_is_forgotten(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE)

    assert heard.at_ms() == {}


def test_a_pod_that_does_not_answer_leaves_what_is_known(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE)

    heard.audits.refresh("standard", [pod(1), {"metadata": {"name": "new"}, "spec": {}, "status": {}}], {ONE})

    assert heard.audits.message_of("standard", ONE) is not None


def test_more_verdicts_than_one_page_has_are_all_heard(heard: Answer) -> None:
    keys = [Key("shop", f"n{number}") for number in range(1_200)]
    for number, key in enumerate(keys):
        heard.verdicts.put(verdict(key, AT_MS + number // 7))

    heard.at_ms(*keys)

    assert all(heard.audits.message_of("standard", key) is not None for key in keys)
