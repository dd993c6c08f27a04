"""The commands `get` and `reschedule`, here and in kubectl: one pending record by its id."""

from __future__ import annotations

import time
from typing import Final

import click

from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import At, Reach, at_topic
from delaytopic_cli.commands.times import asked_time
from delaytopic_gateway.documents import NewTime, OutcomePage
from delaytopic_gateway.errors import ConflictError, RecordMissingError
from delaytopic_gateway.reach.service import TopicService
from delaytopic_gateway.reach.text import due_text, ended_lines, record_lines
from delaytopic_process.command_line import printable
from delaytopic_process.errors import InputError

_PARTITION = click.option(
    "--partition", type=click.IntRange(0), help="Say in which partition the id waits, when it does in several."
)
_GET: Final = """\
Show the record with this ID: what is pending whole, with key, value and headers; what has ended, how it ended.

How a schedule ended is known where the DelayTopic has a topic of outcomes (spec.outcomes), while that keeps it.
{way}

\b
Examples:
  {program} get {topic} order-17
  {program} get {topic} order-17 -o json
"""
_RESCHEDULE: Final = """\
Give the pending record with this ID another time; key, value and headers stay.

It travels through the source topic as a record that replaces the pending one. What is due within five seconds is not
moved: it is about to be delivered.

\b
Examples:
  {program} reschedule {topic} order-17 --after 2h
  {program} reschedule {topic} order-17 --now
"""
_WAY: Final = """
TOPIC is the source topic, or the DelayTopic's name. Its gateway answers, or the relays that --relay names.
"""


def get_command(with_reach: At, program: str, topic: str, way: str) -> click.Command:
    """Return the command for DelayTopics that `with_reach` finds; `way` tells who answers."""

    @click.command(
        "get",
        short_help="Show a record by its id: what waits, or how it ended.",
        help=_GET.format(program=program, topic=topic, way=way),
    )
    @with_reach
    @click.argument("schedule_id", metavar="ID")
    @_PARTITION
    @OUTPUT
    def get(reach: Reach, schedule_id: str, partition: int | None, output: str | None) -> None:
        with reach() as found:
            try:
                record = found.record(schedule_id, partition)
            except RecordMissingError as missing:
                page = _ended(found, schedule_id, partition)
                if page is None:
                    raise
                if not page.outcomes:
                    raise RecordMissingError(f"{missing}; {_searched(page)}") from missing
                show(output, page, ended_lines(page, now_ms=_now_ms()))
                return
        show(output, record, record_lines(record, now_ms=_now_ms()))

    return get


def _ended(found: TopicService, name: str, partition: int | None) -> OutcomePage | None:
    """Return how schedules of an id ended; None where no outcomes are written."""
    try:
        return found.endings(name, partition)
    except ConflictError:
        return None


def _searched(page: OutcomePage) -> str:
    if page.complete:
        return "the topic of outcomes has no end of it (any more)"
    return f"none of the newest {page.looked_at:,} outcomes is about it"


def reschedule_command(with_reach: At, program: str, topic: str) -> click.Command:
    """Return the command for DelayTopics that `with_reach` finds."""

    @click.command(
        "reschedule",
        short_help="Give a pending record another time.",
        help=_RESCHEDULE.format(program=program, topic=topic),
    )
    @with_reach
    @click.argument("schedule_id", metavar="ID")
    @click.option("--after", metavar="DURATION", help="Deliver it so long from now, such as 90s or 1h30m.")
    @click.option(
        "--at", metavar="TIME", help="Deliver it at this time: epoch milliseconds, or RFC 3339 with an offset."
    )
    @click.option("--now", is_flag=True, help="Deliver it at once.")
    @_PARTITION
    @OUTPUT
    def reschedule(
        reach: Reach,
        schedule_id: str,
        after: str | None,
        at: str | None,
        now: bool,
        partition: int | None,
        output: str | None,
    ) -> None:
        if sum((after is not None, at is not None, now)) != 1:
            raise InputError("say when the record is due: with --after, --at or --now")
        time_asked = NewTime.model_validate(asked_time(after, at))
        with reach() as found:
            moved = found.move(schedule_id, partition, time_asked)
        now_ms = _now_ms()
        due = due_text(moved.due_ms if moved.due_ms is not None else now_ms, now_ms=now_ms)
        show(output, moved, [f"{printable(schedule_id)} is due {due}"])

    return reschedule


get = get_command(at_topic(relays=True, kafka=True, outcomes=True), "delaytopic", "shop.reminders.delayed", _WAY)
reschedule = reschedule_command(at_topic(relays=True, kafka=True), "delaytopic", "shop.reminders.delayed")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
