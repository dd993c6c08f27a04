"""`delaytopic get` and `cancel` with a Kafka and relays that are named, and outcomes that the test writes."""

from __future__ import annotations

import json
import re
import time
from threading import Thread

import pytest
from tests.harness.names import unique
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, now_ms, produce
from tests.support.relay.route import PARTITIONS, ClientHeaders
from tests.support.relay.routes import STEADY

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.relay_listing import ask_relay
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration


def test_an_id_is_shown_while_it_waits_and_when_it_has_ended(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an id that waits in partition 1, and a topic of outcomes
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    servers, outcomes = route.servers.bootstrap_servers, unique("outcomes")
    create_topics(servers, [TopicPlan(outcomes, PARTITIONS)])
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    page = f"http://127.0.0.1:{relay.port()}"
    headers: ClientHeaders = [("deliver-at", str(now_ms() + 3_600_000)), ("deliver-id", "order-17")]
    (place,) = produce(servers, route.source, [Sent(b"k", b"tea", headers, 1)])
    wait_for(lambda: (ask_relay(page, {}).document or pytest.fail("no list")).records, relay.why)
    options = ["--relay", page, "-b", servers, "--outcomes", outcomes]
    assert run(["get", route.source, "order-17", *options, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["partition"] == 1

    def answer() -> None:
        wait_for(lambda: len(route.read(route.source)) == 2, relay.why)
        source = RecordPlace(topic=route.source, partition=1, offset=place.offset)
        by = source.model_copy(update={"offset": place.offset + 1})
        outcome = Outcome(
            outcome=Ending.CANCELLED,
            id="order-17",
            ended_ms=time.time_ns() // 1_000_000,
            source=source,
            ended_by=by,
            requested_by="shop-desk",
        )
        produce(servers, outcomes, [Sent(b"order-17", outcome.model_dump_json(by_alias=True).encode(), [], 1)])

    # When it is cancelled
    answering = Thread(target=answer)
    answering.start()
    code = run(["cancel", route.source, "order-17", *options, "--wait", "30s", "-o", "text"])
    answering.join()
    said = capsys.readouterr().out

    # Then the cancel says who won, and get how it ended
    assert code == 0
    assert re.fullmatch(r"order-17: cancelled at [0-9:.]+, by shop-desk\n", said)
    wait_for(lambda: not (ask_relay(page, {}).document or pytest.fail("no list")).records, relay.why)
    assert run(["get", route.source, "order-17", *options, "-o", "text"]) == 0
    assert re.match(r"ended    cancelled at [0-9:.]+, by shop-desk\n", capsys.readouterr().out)
