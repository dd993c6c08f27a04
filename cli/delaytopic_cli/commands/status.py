"""`delaytopic status`: how the DelayTopics of each running `delaytopic local` do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import click

from delaytopic_api.relay import RelayState, RelayStatus
from delaytopic_gateway.client.relay_listing import relay_status
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.state import LocalState, running_states
from delaytopic_process.command_line import NearChoice, echo, echo_json
from delaytopic_process.errors import InputError


@click.command(short_help="Show how the DelayTopics of `delaytopic local` do.")
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", show_default=True)
def status(output: str) -> None:
    """Show each running `delaytopic local` of this machine, and how its DelayTopics do.

    For DelayTopics of a cluster there is kubectl delaytopic status.

    \b
    Examples:
      delaytopic status
      delaytopic status -o json
    """
    running = [(state, _statuses(state)) for state in running_states()]
    if output == "json":
        echo_json([_document(state, statuses) for state, statuses in running])
        return
    if not running:
        raise InputError("no `delaytopic local` runs here; start one with: delaytopic local -f FILE")
    for state, statuses in running:
        for line in _lines(state, statuses, now_ms=time.time_ns() // 1_000_000):
            echo(line)


def _statuses(state: LocalState) -> list[RelayStatus]:
    found = []
    for url in state.relay_urls:
        with suppress(RelayUnreachableError):
            found.append(relay_status(url))
    return found


def _lines(state: LocalState, statuses: Sequence[RelayStatus], *, now_ms: int) -> Iterator[str]:
    yield f"{state.name} (process {state.pid}): Kafka {state.bootstrap_servers}, console {state.gateway_url}"
    for topic in state.topics:
        of_topic = [each for each in statuses if each.delay_topic == topic.name]
        at_work = sum(each.state is not RelayState.STARTING for each in of_topic)
        next_dues = [each.next_due_ms for each in of_topic if each.next_due_ms is not None]
        facts = [
            f"{at_work} relay{'' if at_work == 1 else 's'}",
            f"{sum(each.pending - each.withdrawn for each in of_topic):,} pending",
            f"{sum(each.overdue for each in of_topic):,} overdue",
            *([f"next due {clock_text(min(next_dues), now_ms=now_ms)}"] if next_dues else []),
            f"{sum(each.delivered_total for each in of_topic):,} delivered",
            f"{sum(each.dead_lettered_total for each in of_topic):,} dead letters",
        ]
        yield f"  {topic.name}: {', '.join(facts)}"
        yield from _former_rules(of_topic, now_ms)
        yield from _misspelt(topic, of_topic)
        yield from _ancient(topic, of_topic)


def _former_rules(statuses: Sequence[RelayStatus], now_ms: int) -> Iterator[str]:
    former = [rules for each in statuses for shard in each.shards for rules in shard.former_rules]
    if former:
        last = clock_text(max(each.last_due_ms for each in former), now_ms=now_ms)
        records = sum(each.records for each in former)
        yield f"    up to {records:,} records keep the rules of before an edit, the last due {last}"


def _misspelt(topic: KnownTopic, statuses: Sequence[RelayStatus]) -> Iterator[str]:
    names = [each.misspelt_header for each in statuses if each.misspelt_header is not None]
    if names:
        total = sum(each.misspelt_total for each in statuses)
        yield f"    records to {topic.source} that left as if they named no time: {total:,}, with a header {names[-1]}"


def _ancient(topic: KnownTopic, statuses: Sequence[RelayStatus]) -> Iterator[str]:
    total = sum(each.ancient_total for each in statuses)
    if total:
        yield f"    records to {topic.source} that were due in 1973 or before (seconds for milliseconds?): {total:,}"


def _document(state: LocalState, statuses: Sequence[RelayStatus]) -> dict[str, Any]:
    return {
        "name": state.name,
        "pid": state.pid,
        "bootstrapServers": state.bootstrap_servers,
        "console": state.gateway_url,
        "delayTopics": [
            {
                "name": topic.name,
                "source": topic.source,
                "target": topic.target,
                "deadLetter": topic.dead_letter,
                "relays": [each.model_dump(by_alias=True) for each in statuses if each.delay_topic == topic.name],
            }
            for topic in state.topics
        ],
    }
