"""Tests of how long a topic keeps a record."""

from __future__ import annotations

import pytest

from delaytopic_api.records import LAST_INSTANT_MS, UNLIMITED
from delaytopic_relay.kafka.preflight import TopicFacts

DAY_MS = 86_400_000
AT_MS = 1_795_269_686_271  # 2026-11-21T14:01:26.271Z
USUAL = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": str(30 * DAY_MS)}


def kept(timestamp_ms: int | None = AT_MS, /, **settings: str) -> str | None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return TopicFacts("source", 1, {**USUAL, **named}).keeps_until(timestamp_ms)


def test_a_record_is_kept_for_the_retention_from_its_timestamp_on_in_whole_seconds() -> None:
    assert kept() == "2026-12-21T14:01:26Z"


@pytest.mark.parametrize("timestamp_ms", [AT_MS, None])
def test_a_record_is_kept_for_ever_without_a_retention(timestamp_ms: int | None) -> None:
    assert kept(timestamp_ms, retention_ms="-1") == UNLIMITED


def test_a_record_is_kept_for_ever_if_that_ends_after_the_last_instant() -> None:
    assert kept(LAST_INSTANT_MS - 1, retention_ms="1") == "9999-12-31T23:59:59Z"
    assert kept(LAST_INSTANT_MS, retention_ms="1") == UNLIMITED
    assert kept(AT_MS, retention_ms=str(2**63 - 1)) == UNLIMITED


def test_nobody_knows_how_long_a_record_without_a_timestamp_is_kept() -> None:
    assert kept(None) is None


@pytest.mark.parametrize(
    "settings", [{"cleanup_policy": "compact"}, {"cleanup_policy": "compact,delete"}, {"retention_bytes": "1000000"}]
)
def test_nobody_knows_how_long_a_record_is_kept_that_others_may_push_out(settings: dict[str, str]) -> None:
    assert kept(AT_MS, **settings) is None


def test_nobody_knows_how_long_a_topic_keeps_records_whose_settings_may_not_be_read() -> None:
    assert TopicFacts("source", 1, {}).keeps_until(AT_MS) is None
