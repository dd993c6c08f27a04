"""`kubectl delaytopic trigger` and `backfill`: deliveries of a RecurringRecord beside those that recur."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import click

from delaytopic_api import RecurringRecord
from delaytopic_api.records import rfc_3339
from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import ReachGateway
from delaytopic_cli.kubectl.by_hand import backfilled, slots_within, triggered
from delaytopic_cli.kubectl.gateway import at_gateway_of_recurring
from delaytopic_gateway.client.time_text import instant_ms
from delaytopic_process.command_line import echo
from delaytopic_process.errors import InputError, ProgramError

TELL_S: Final = 2.0
FindRecord = Callable[[], RecurringRecord]


@click.command(short_help="Deliver a RecurringRecord now, beside its times.")
@at_gateway_of_recurring
@OUTPUT
def trigger(find: FindRecord, reach: ReachGateway, output: str | None) -> None:
    """Deliver the record of the RecurringRecord NAME once more, now.

    What recurs is not touched: the next delivery comes at its time. The delivered record has the header
    delay-triggered, with the time of this call and the object. The gateway of the cluster writes it, for who may write
    to the DelayTopic.

    \b
    Examples:
      kubectl delaytopic trigger report -n shop
    """
    now_ms, record = _now_ms(), find()
    with reach() as topic:
        accepted = topic.schedule(triggered(record, now_ms))
    place = f"{accepted.partition}:{accepted.offset}"
    show(output, accepted, [f"{record.full_name} is delivered in a moment: written to {_topic(record)} at {place}"])


@click.command(short_help="Deliver a RecurringRecord for times that are past.")
@at_gateway_of_recurring
@click.option("--from", "begin", metavar="TIME", required=True, help="The first time: epoch ms, or RFC 3339.")
@click.option("--to", "end", metavar="TIME", help="The last time, which is past. Default: now.")
@click.option("--dry-run", is_flag=True, help="Only list the times.")
@click.option("--yes", is_flag=True, help="Do not ask before it writes.")
@OUTPUT
def backfill(
    find: FindRecord,
    reach: ReachGateway,
    begin: str,
    end: str | None,
    dry_run: bool,
    yes: bool,
    output: str | None,
) -> int:
    """Deliver the record of the RecurringRecord NAME now, once for each time of its rule in a span, in their order.

    What recurs is not touched. Each delivered record has the header delay-backfilled, with its time and the object:
    the same time has the same header, however often it is asked for. At most 10,000 times are taken, by the rule as it
    is now. What was broken off says with which --from it goes on.

    \b
    Examples:
      kubectl delaytopic backfill report -n shop --from 2026-11-02T00:00:00Z --dry-run
      kubectl delaytopic backfill report -n shop --from 2026-11-02T00:00:00Z --to 2026-11-06T23:59:59Z --yes
    """
    if not (dry_run or yes or sys.stdin.isatty()):
        raise InputError("nobody is there to be asked whether it is meant so: give --yes, or --dry-run to list only")
    now_ms = _now_ms()
    begin_ms = instant_ms(begin)
    end_ms = instant_ms(end) if end is not None else now_ms
    record = find()
    slots = slots_within(record, begin_ms, end_ms, now_ms)
    if dry_run:
        show(output, _document(record, slots, written=0), [*map(rfc_3339, slots), _times(slots)])
        return 0
    if slots and not yes:
        echo(f"{_times(slots)} of {record.full_name}, from {rfc_3339(slots[0])} to {rfc_3339(slots[-1])}", err=True)
        if not click.confirm("Deliver them now?", err=True):
            echo("nothing was written", err=True)
            return ProgramError.exit_code
    _write(record, slots, reach)
    show(output, _document(record, slots, written=len(slots)), _lines(record, slots))
    return 0


def _write(record: RecurringRecord, slots: Sequence[int], reach: ReachGateway) -> None:
    """Write one record after the other. Raises `ProgramError`s that tell how to go on."""
    told_s, done = time.monotonic(), 0
    try:
        if slots:
            with reach() as topic:
                for done, slot_ms in enumerate(slots):
                    topic.schedule(backfilled(record, slot_ms))
                    if time.monotonic() - told_s > TELL_S:
                        told_s = time.monotonic()
                        echo(f"{done + 1:,} of {len(slots):,} are written, up to {rfc_3339(slot_ms)}", err=True)
    except ProgramError as error:
        raise type(error)(f"{error}; {_go_on(slots, done)}") from error
    except KeyboardInterrupt:
        echo(_go_on(slots, done), err=True)
        raise


def _go_on(slots: Sequence[int], done: int) -> str:
    """Return how to go on behind so many. Of the next one it is not known whether it was written."""
    return f"{done:,} of {len(slots):,} are written: go on with --from {rfc_3339(slots[done])}"


def _document(record: RecurringRecord, slots: Sequence[int], *, written: int) -> dict[str, Any]:
    return {
        "recurringRecord": record.full_name,
        "delayTopic": _topic(record),
        "times": [rfc_3339(each) for each in slots],
        "written": written,
    }


def _lines(record: RecurringRecord, slots: Sequence[int]) -> Iterator[str]:
    span = f", from {rfc_3339(slots[0])} to {rfc_3339(slots[-1])}" if slots else ""
    yield f"{_times(slots)} of {record.full_name} written to {_topic(record)}{span}"


def _times(slots: Sequence[int]) -> str:
    return "1 time" if len(slots) == 1 else f"{len(slots):,} times"


def _topic(record: RecurringRecord) -> str:
    return f"{record.metadata.namespace}/{record.spec.delay_topic}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
