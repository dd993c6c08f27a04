"""A DelayTopic whose relays are asked themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.relay.backlog.listings import pending_list

from delaytopic_api.relay import PendingRecord, PendingShard
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.documents import NewTime
from delaytopic_gateway.errors import ConflictError, RelayUnreachableError
from delaytopic_gateway.reach.direct import DirectTopic
from delaytopic_process.errors import InputError
from delaytopic_relay.telemetry.server import Health, PageServer


@contextmanager
def relay_of(delay_topic: str, source: str) -> Iterator[str]:
    """Serve the pages of a relay with nothing pending; their address."""
    healthy = Health(True, "running")
    found = pending_list(delay_topic=delay_topic, source=source, source_partitions=1, pending=0, shards=[])
    server = PageServer(
        "127.0.0.1",
        0,
        health=lambda: healthy,
        readiness=lambda: healthy,
        metrics=bytes,
        status=lambda: pytest.fail("nobody asks for it"),
        pending=lambda query: found,
    )
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def test_a_relay_that_does_not_answer_may_be_the_one_that_serves_the_topic() -> None:
    with relay_of("post/letters", "post.delayed") as url:
        with pytest.raises(RelayUnreachableError, match=r"no relay of shop\.delayed answered: .*localhost:1 does not"):
            DirectTopic("shop.delayed", [url, "http://localhost:1"]).find("a")
        with pytest.raises(InputError, match="none of the relays serves"):
            DirectTopic("shop.delayed", [url]).find("a")
        assert not DirectTopic("letters", [url, "http://localhost:1"]).find("a").complete


def test_a_record_of_another_dialect_is_not_moved() -> None:
    record = PendingRecord.model_validate(
        {"dueMs": 1, "partition": 0, "offset": 7, "target": "t", "id": "a", "content": {"key": "a", "headers": []}}
    )
    listed = pending_list(shards=[PendingShard(partition=0, listed=True)], records=[record])
    topic = DirectTopic("reminders", ["u"], ask=lambda urls, asked: [RelayAnswer("u", listed)])

    with pytest.raises(ConflictError, match="the record a is written in a dialect that only its own clients write"):
        topic.move("a", None, NewTime())
