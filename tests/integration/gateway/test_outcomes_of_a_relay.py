"""The ends of schedules as a relay writes them, asked for by REST, by commands and in the console."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.gateway.of_route import gateway_of, page_of, rest_of
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.relay_listing import ask_relay
from delaytopic_gateway.rest.outcomes import LONGEST_WAIT_S

pytestmark = [pytest.mark.integration, BUCKETS_NIGHTLY]

CLOCK = r"\d\d:\d\d:\d\d\.\d{3}"


class Desk:
    """A DelayTopic with outcomes, its relay and its gateway, as one caller sees them."""

    def __init__(self, route: Route, relay: RelayProcess, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.route, self.relay, self.url = route, relay, url
        self._capsys = capsys

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Return status and document of an answer; `path` is whole, as answers name it."""
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)

    def schedule(self, name: str, after: str) -> Any:
        """Schedule a record; return what was accepted."""
        document = {"id": name, "value": "tea", "deliverAfter": after}
        return self.ask("POST", f"{rest_of(self.route)}/records", document)[1]

    def ended(self, address: str) -> Any:
        """Follow an address until it tells how the schedule ended."""

        def told() -> Any:
            nonlocal address
            status, document = self.ask("GET", f"{address}&wait={LONGEST_WAIT_S:.0f}s")
            address = document.get("next", address)
            return document if status == 200 else None

        return wait_for(told, self.relay.why)

    def await_pending(self, *names: str) -> None:
        """Wait until the relay has these, and nothing else."""

        def pending() -> set[str | None]:
            document = ask_relay(page_of(self.relay), {}).document
            return {record.id for record in document.records} if document is not None else {None}

        wait_for(lambda: pending() == {*names}, self.relay.why)

    def commanded(self, command: str, *arguments: str) -> tuple[int, str]:
        """Return exit code and output of a command."""
        code = run([command, *arguments, "-o", "text"])
        return code, self._capsys.readouterr().out

    def page(self, name: str) -> str:
        """Return the text of the console's page of an id, in one line."""
        address = f"{self.url}/delaytopics/tests/{self.route.name}/record?id={name}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return " ".join(re.sub(r"<[^>]+>", " ", answer.read().decode()).split())


@pytest.fixture
def desk(make_route: MakeRoute, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    route = make_route(outcomes={})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    with gateway_of(route, relay) as url:
        yield Desk(route, relay, url, capsys)


def test_each_write_by_rest_names_the_address_that_tells_how_its_schedule_ended(desk: Desk) -> None:
    # Given one record for now, one to cancel and one to move
    now, cancelled, moved = desk.schedule("now", "0s"), desk.schedule("cancelled", "30m"), desk.schedule("moved", "30m")
    desk.await_pending("cancelled", "moved")

    # When they are cancelled and moved
    _, cancel = desk.ask("DELETE", f"{rest_of(desk.route)}/records/cancelled")
    _, move = desk.ask("PATCH", f"{rest_of(desk.route)}/records/moved", {"deliverAfter": "40m"})
    told = {name: desk.ended(each["outcome"]) for name, each in (("now", now), ("cancel", cancel), ("move", move))}

    # Then the relay tells the end of each, whichever of its addresses is asked
    assert {name: (each["outcome"], each["source"]["offset"]) for name, each in told.items()} == {
        "now": ("Delivered", now["offset"]),
        "cancel": ("Cancelled", cancelled["offset"]),
        "move": ("Replaced", moved["offset"]),
    }
    assert desk.ended(cancelled["outcome"]) == told["cancel"]
    assert told["cancel"]["endedBy"]["offset"] == cancel["offset"]
    assert told["move"]["endedBy"]["offset"] == move["offset"]
    # And the delivered record is where the outcome says
    (arrived,) = desk.route.read(desk.route.target)
    place = {"topic": desk.route.target, "partition": arrived.at.partition, "offset": arrived.at.offset}
    assert told["now"]["target"] == place
    # And what waits has not ended
    waiting = f"{rest_of(desk.route)}/outcomes/{move['partition']}:{move['offset']}?from={move['outcomesFrom']}"
    assert desk.ask("GET", waiting)[0] == 202


# Each day commands ask relays of what waits.
@pytest.mark.parametrize("way", ["gateway", pytest.param("relays", marks=pytest.mark.nightly)])
def test_a_cancel_says_who_won_and_get_how_an_id_ended(desk: Desk, way: str) -> None:
    servers = desk.route.servers.bootstrap_servers
    direct = ["--relay", page_of(desk.relay), "-b", servers, "--outcomes", desk.route.outcomes]
    options = direct if way == "relays" else ["--gateway", desk.url]
    desk.schedule("later", "30m")
    now = desk.schedule("now", "0s")
    desk.await_pending("later")
    delivered = desk.ended(now["outcome"])

    cancelled = desk.commanded("cancel", desk.route.source, "later", "--wait", "30s", *options)
    later = desk.commanded("get", desk.route.source, "later", *options)
    gone = desk.commanded("get", desk.route.source, "now", *options)

    assert cancelled[0] == 0
    assert re.fullmatch(rf"later: cancelled at {CLOCK}, by the record \S+\n", cancelled[1])
    assert later[0] == 0
    assert re.match(rf"ended    cancelled at {CLOCK}, by the record {desk.route.source}:\d:\d+\n", later[1])
    to = "{topic}:{partition}:{offset}".format(**delivered["target"])
    assert gone[0] == 0
    assert re.match(rf"ended    delivered at {CLOCK} to {re.escape(to)}\n", gone[1])


def test_the_console_shows_the_whole_life_of_an_id(desk: Desk) -> None:
    desk.schedule("order-17", "30m")
    desk.await_pending("order-17")
    desk.schedule("order-17", "0s")

    page = wait_for(lambda: "delivered" in (found := desk.page("order-17")) and found, desk.relay.why)

    assert "Nothing with this id is pending. Ended delivered" in page
    ends = re.findall(r"\d:\d+ \S+(?: \S+)? (replaced|delivered)", page)
    assert ends == ["replaced", "delivered"]
