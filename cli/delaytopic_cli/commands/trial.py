"""`delaytopic trial`: send one record through a DelayTopic, and judge how it arrives."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource
from confluent_kafka import Consumer

from delaytopic_api.records import DELIVER_AFTER, LAST_INSTANT_MS
from delaytopic_api.values import Duration
from delaytopic_cli.commands.options import client_settings, kafka_options, known_topics, refuse_moved_clock
from delaytopic_gateway.client.kafka_clients import committed_reader, partitions_of
from delaytopic_gateway.client.kafka_login import kafka_settings
from delaytopic_gateway.client.lateness import milliseconds_text
from delaytopic_gateway.client.new_records import Addressing, OutgoingRecord, Timing
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_gateway.client.time_text import clock_text, duration
from delaytopic_gateway.client.topic_reader import last_places, raw_record
from delaytopic_gateway.client.watching import Arrival, json_line, receipt_of
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_local.session.known_topics import KnownTopic, objection
from delaytopic_local.verifier.reading import Rules, read_delivered, read_source
from delaytopic_local.verifier.verdict import SourceRecord, verify
from delaytopic_process.command_line import NearChoice, echo
from delaytopic_process.errors import InputError, ProgramError

WATCHED_ON_MS: Final = 2_000
"""A relay that delivers what another one has delivered does so soon after it."""
_POLL_SECONDS: Final = 0.1


class TrialFailedError(ProgramError):
    """The record is lost, or arrived early, twice or changed: the DelayTopic does not keep its promises."""

    exit_code = 6


@dataclass(frozen=True, slots=True)
class Arrived:
    """A record of the target topic, and the time at which it was read, by this machine's clock."""

    record: RawRecord
    at_ms: int


@click.command(short_help="Send a record through a DelayTopic, and see it arrive.")
@click.argument("topic")
@click.option("--target", metavar="TOPIC", help="The target topic. Default: as the running `delaytopic local` has it.")
@click.option("--after", default="5s", show_default=True, metavar="DURATION", help="Have it delivered after this time.")
@click.option("--timeout", default="1m", show_default=True, metavar="DURATION", help="Give up so long after it is due.")
@click.option(
    "--kafka-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Log in to Kafka with this file, as a gateway does: bootstrapServers and security (YAML or JSON).",
)
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", help="A line for people or JSON.")
@kafka_options
def trial(
    topic: str,
    target: str | None,
    after: str,
    timeout: str,
    kafka_config: Path | None,
    output: str,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """Send one record to a source TOPIC, and wait until its target has it: once, unchanged and not early.

    It is watched for two seconds more, as it must not come twice. Consumers of the target see the record. The
    DelayTopic reads the dialect Native, and has no fixedDelay. Of the Kafka login it takes WRITE on the source topic
    and READ on the target. The exit code is 6 if the DelayTopic fails.

    \b
    Examples:
      delaytopic trial shop.reminders.delayed
      delaytopic trial shop.trial.delayed --target shop.trial --after 10s -b kafka:9092
      delaytopic trial shop.trial.delayed --target shop.trial --kafka-config kafka.yaml -o json
    """
    client = _client(kafka_config, bootstrap_servers, settings)
    refuse_moved_clock(client)
    delay, patience_ms = duration(after), duration(timeout).ms
    target = _target(topic, target, delay, known_topics(client))
    partitions_of(client, topic)
    partitions = partitions_of(client, target)
    consumer = committed_reader(client)
    try:
        # Before it is sent: a record that arrives at once is early, and not lost.
        consumer.assign(last_places(client, consumer, target, partitions, 0))
        sent = _send(client, topic, target, delay)
        echo(f"sent {sent.at}, due at {clock_text(sent.due_ms, now_ms=_now_ms())}", err=True)
        arrivals = _arrivals(consumer, sent, patience_ms)
    finally:
        consumer.close()
    reason = failure(sent, arrivals, now_ms=_now_ms())
    if reason is not None:
        raise TrialFailedError(reason)
    arrival = _arrival(arrivals[0])
    echo(json_line(arrival) if output == "json" else arrival_text(arrival, target))


def _client(file: Path | None, bootstrap_servers: str | None, pairs: tuple[str, ...]) -> dict[str, str]:
    if file is None:
        return client_settings(bootstrap_servers, pairs)
    source = click.get_current_context().get_parameter_source("bootstrap_servers")
    if pairs or source is ParameterSource.COMMANDLINE:
        raise InputError("--kafka-config has servers and settings: leave -b and -X out, or it")
    return kafka_settings(file)


def _target(topic: str, target: str | None, delay: Duration, known: Sequence[KnownTopic]) -> str:
    """Return the target topic; raises InputError where it is not known, or the DelayTopic would refuse the record."""
    reason = objection(topic, known, Timing(after=delay), Addressing(), now_ms=_now_ms())
    if reason is not None:
        raise InputError(reason)
    found = target or next((each.target for each in known if each.source == topic), None)
    if found is None:
        raise InputError("--target: name the target topic of the DelayTopic; no running `delaytopic local` knows it")
    return found


def _send(client: dict[str, str], topic: str, target: str, delay: Duration) -> SourceRecord:
    """Send a record that no other resembles, and return what it asks for."""
    key = f"trial-{uuid.uuid4()}".encode()
    record = OutgoingRecord(key, b"sent by delaytopic trial", [(DELIVER_AFTER, delay.encode())])
    place = KafkaCluster(client).write(topic, record, None)
    at = Coordinates(topic, place.partition, place.offset)
    raw = RawRecord(at, place.timestamp_ms, record.key, record.value, tuple(record.headers))
    return read_source(raw, Rules(target, LAST_INSTANT_MS))


def _arrivals(consumer: Consumer, sent: SourceRecord, patience_ms: int) -> list[Arrived]:
    """Read until it has arrived and was watched on, or the patience after its time is over."""
    until_ms, said_ms = sent.due_ms + patience_ms, _now_ms()
    arrivals: list[Arrived] = []
    while (now_ms := _now_ms()) < until_ms:
        message = consumer.poll(_POLL_SECONDS)
        record = raw_record(message) if message is not None else None
        if record is not None and record.key == sent.key:
            arrivals.append(Arrived(record, _now_ms()))
            until_ms = arrivals[0].at_ms + WATCHED_ON_MS
        elif not arrivals and now_ms - said_ms >= _interval_ms():
            said_ms = now_ms
            echo(waiting_text(sent.due_ms, now_ms), err=True)
    return arrivals


def _interval_ms() -> int:
    """Return how often people, or a log, are told that it waits."""
    return 1_000 if sys.stderr.isatty() else 10_000


def waiting_text(due_ms: int, now_ms: int) -> str:
    """Return how long it takes still, or how late the record is."""
    left_ms = due_ms - now_ms
    span = milliseconds_text(abs(left_ms))
    return f"due in {span} ..." if left_ms > 0 else f"not there yet, {span} after it was due ..."


def failure(sent: SourceRecord, arrivals: Sequence[Arrived], *, now_ms: int) -> str | None:
    """Return what is wrong with how a record arrived, and what to do about it; None if nothing is."""
    if not arrivals:
        return (
            f"{sent.at} has not arrived on {sent.target}, {milliseconds_text(now_ms - sent.due_ms)} after it was due: "
            f"look at the DelayTopic's status, and whether delaytopic dead-letters {sent.at.topic} lists it; it may "
            "arrive still"
        )
    delivered = [read_delivered(each.record) for each in arrivals]
    faults = verify([sent], delivered, until_ms=now_ms).faults
    if "twice" in faults:
        times = f"{sent.at} has arrived {len(arrivals)} times on {sent.target}"
        return f"{times}: that must never happen; keep the relays' logs, and report it"
    if "early" in faults:
        early = milliseconds_text(sent.due_ms - min(min(each.sent_ms, each.timestamp_ms) for each in delivered))
        return (
            f"{sent.at} has arrived {early} early on {sent.target}: does a relay of the dialect Native deliver there?"
        )
    if faults:
        return (
            f"{sent.at} has arrived on {sent.target} otherwise than it was sent ({', '.join(faults)}): does a relay of "
            "the dialect Native deliver there, and nobody else?"
        )
    return None


def arrival_text(arrival: Arrival, target: str) -> str:
    """Return one line for people on a record that arrived as it should."""
    receipt, arrived_ms = arrival.receipt, arrival.arrived_ms
    assert receipt is not None
    assert arrived_ms is not None
    sent, read = milliseconds_text(receipt.lateness_ms), milliseconds_text(arrived_ms - receipt.due_ms)
    return f"arrived once on {target}, not early: sent by the relay {sent} after it was due, read here {read} after it"


def _arrival(arrived: Arrived) -> Arrival:
    record = arrived.record
    return Arrival(
        partition=record.at.partition,
        offset=record.at.offset,
        arrived_ms=arrived.at_ms,
        key=record.key,
        value=record.value,
        receipt=receipt_of([*record.headers]),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
