"""Verdicts of audits, asked of what their pods serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from delaytopic_cli.audit.serving import Verdicts, serving
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.reconciliation import Key, class_key
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.observe.told_verdicts import ToldVerdicts

AT_MS = 1_795_269_600_000
ANYWHERE = ("127.0.0.1", 0)
AUDIT = class_key("standard")
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

    def __init__(self, audits: ToldVerdicts, verdicts: Verdicts, port: int) -> None:
        self.audits = audits
        self.verdicts = verdicts
        self.keeps = False
        self.port = port
        self._pod = pod(port)

    def at_ms(self, *users: Key) -> dict[Key, int]:
        """Ask, and return when the known verdicts on these DelayTopics were given."""
        self.audits.refresh(AUDIT, [self._pod], users, lambda _: self.keeps)
        told = {key: self.audits.message_of(AUDIT, key) for key in (ONE, OTHER)}
        return {key: message.generated_at_ms for key, message in told.items() if message is not None}


@pytest.fixture
def heard(pages: RelayPages) -> Iterator[Answer]:
    verdicts = Verdicts()
    with serving(ANYWHERE, verdicts) as port:
        yield Answer(ToldVerdicts(pages), verdicts, port)


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
    started_again = Verdicts()
    started_again.put(verdict(ONE, AT_MS + 5))

    with serving(ANYWHERE, started_again) as port:
        heard.audits.refresh(AUDIT, [pod(port)], {ONE}, lambda _: False)

    message = heard.audits.message_of(AUDIT, ONE)
    assert message is not None
    assert message.generated_at_ms == AT_MS + 5


def test_nothing_is_heard_of_delay_topics_that_the_audit_is_not_about(heard: Answer) -> None:
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

    heard.audits.refresh(
        AUDIT, [pod(1), {"metadata": {"name": "new"}, "spec": {}, "status": {}}], {ONE}, lambda _: False
    )

    assert heard.audits.message_of(AUDIT, ONE) is not None


def test_more_verdicts_than_one_page_has_are_all_heard(heard: Answer) -> None:
    keys = [Key("shop", f"n{number}") for number in range(1_200)]
    for number, key in enumerate(keys):
        heard.verdicts.put(verdict(key, AT_MS + number // 7))

    heard.at_ms(*keys)

    assert all(heard.audits.message_of(AUDIT, key) is not None for key in keys)


def test_a_pod_hears_that_its_verdicts_are_kept_once_all_of_them_are(heard: Answer) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE)
    heard.at_ms(ONE)
    before = heard.verdicts.await_kept(0)

    heard.keeps = True
    heard.at_ms(ONE)

    assert (before, heard.verdicts.await_kept(0)) == (False, True)


def test_another_operator_that_takes_over_hears_all_again(heard: Answer, pages: RelayPages) -> None:
    heard.verdicts.put(verdict(ONE, AT_MS))
    heard.at_ms(ONE)
    successor = Answer(ToldVerdicts(pages), heard.verdicts, heard.port)

    assert successor.at_ms(ONE) == {ONE: AT_MS}


def test_why_an_audit_cannot_be_set_up_is_known_until_it_can(pages: RelayPages) -> None:
    told = ToldVerdicts(pages)
    told.note_failure(AUDIT, "quota exceeded")
    failed = told.failure_of(AUDIT)
    told.note_failure(AUDIT, None)

    assert (failed, told.failure_of(AUDIT)) == ("quota exceeded", None)
