"""The lists that relays give through the API server, put together as those of `delaytopic pending`."""

from __future__ import annotations

from delaytopic_api.relay import PendingList
from delaytopic_cli.client.relay_listing import RelayAnswer
from delaytopic_cli.kubectl.pending import PodAnswer, relay_answer

LISTED = PendingList(
    relay="r-1", delay_topic="shop/reminders", source="a", source_partitions=1, as_of_ms=1, pending=0, overdue=0,
    ingest_lag=0, limit=5, complete=True,
)  # fmt: skip


def test_a_list_is_read() -> None:
    assert relay_answer(PodAnswer("ns/pod", LISTED.to_json())) == RelayAnswer("ns/pod", LISTED)


def test_a_pod_that_cannot_be_asked_says_why() -> None:
    assert relay_answer(PodAnswer("ns/pod", problem="no")) == RelayAnswer("ns/pod", problem="no")


def test_a_page_of_something_else_is_no_list() -> None:
    answer = relay_answer(PodAnswer("ns/pod", "<html>"))

    assert answer.document is None
    assert (answer.problem or "").startswith("answered with something else")
