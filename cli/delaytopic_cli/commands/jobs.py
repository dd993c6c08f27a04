"""The commands of `jobs`, here and in kubectl: cancel, move or release many pending records at once."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import click

from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import At, ReachGateway, at_gateway
from delaytopic_cli.commands.times import before_ms
from delaytopic_gateway.client import jobs as shaping
from delaytopic_gateway.client.jobs import (
    DONE,
    RUNNING,
    Job,
    count_text,
    job_lines,
    new_job,
    progress_text,
    table_lines,
)
from delaytopic_gateway.errors import ForbiddenError, GatewayUnreachableError, RecordMissingError, UnauthenticatedError
from delaytopic_process.command_line import NearChoice, echo
from delaytopic_process.errors import InputError, ProgramError

LOOK_S: Final = 1.0
SILENT_S: Final = 60.0
"""A gateway that is started anew takes a job up again: so long its silence is borne."""
_FINAL: Final = (ForbiddenError, RecordMissingError, UnauthenticatedError)
_HELP: Final = """\
Cancel, move or release many pending records of a DelayTopic at once: all that match.

The gateway carries jobs out, one of a DelayTopic at a time, and keeps them in Kafka: one that is killed goes on where
it was, and each record gets its command once.

\b
Examples:
  {program} jobs start {topic} move --by 1h30m --id-prefix campaign- --dry-run
  {program} jobs start {topic} cancel --due-before 10m --key-prefix eu- --follow
  {program} jobs list {topic}
"""
_START_HELP: Final = """\
Start a job that cancels, moves or releases (delivers now) what matches all that is given.

First it counts, and asks whether it is meant so. An --id of your own makes it safe to ask twice. What is due within 30
seconds is neither moved nor released: it is about to be delivered.

\b
Examples:
  {program} jobs start {topic} release --due-before 2026-11-26T00:00:00Z --yes
  {program} jobs start {topic} move --at 2026-12-01T08:00:00+01:00 --all
  {program} jobs start {topic} move --by -15m --id-prefix campaign- \\
      --id campaign-earlier --yes --follow
"""


def _start_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `start`, in the order of use."""
    options = (
        click.argument("action", type=NearChoice([*shaping.ACTIONS])),
        click.option(
            "--due-from", metavar="TIME", help="Take what is due then or later: epoch ms, RFC 3339, or from now: 1h30m."
        ),
        click.option("--due-before", metavar="TIME", help="Take what is due before."),
        click.option("--id-prefix", metavar="TEXT", help="Take what has an id that begins so."),
        click.option("--key-prefix", metavar="TEXT", help="Take what has a key that begins so."),
        click.option("--partition", type=click.IntRange(0), help="Take what is in this source partition."),
        click.option("--all", "everything", is_flag=True, help="Take all that is pending."),
        click.option(
            "--after", metavar="DURATION", help="Move: let all be due so long from now, such as 90s or 1h30m."
        ),
        click.option(
            "--at", metavar="TIME", help="Move: let all be due at this time: epoch ms, or RFC 3339 with an offset."
        ),
        click.option(
            "--by", metavar="DURATION", help="Move: let each be due so much later than it was; -15m is earlier."
        ),
        click.option("--id", "job_id", metavar="NAME", help="Give the job this name. Default: a new one."),
        click.option("--dry-run", is_flag=True, help="Only count the records that match now."),
        click.option("--yes", is_flag=True, help="Do not ask before it starts."),
        click.option("--follow", is_flag=True, help="Show its progress until it is over, as `follow` does."),
        OUTPUT,
    )
    for option in reversed(options):
        command = option(command)
    return command


def jobs_group(with_reach: At, program: str, topic: str) -> click.Group:
    """Return the commands for DelayTopics that `with_reach` finds; `program` and `topic` are for the examples."""
    words = {"program": program, "topic": topic}

    @click.group("jobs", short_help="Cancel, move or release many records.", help=_HELP.format(**words))
    def jobs() -> None:
        pass

    @jobs.command("list", short_help="List jobs, the last one first.")
    @with_reach
    @OUTPUT
    def list_(reach: ReachGateway, output: str | None) -> None:
        """List the jobs of a DelayTopic, the last one first. Ended ones are forgotten after thirty days."""
        with reach() as found:
            listed = found.jobs()
        show(output, listed, table_lines(listed, now_ms=_now_ms()))

    @jobs.command("show", short_help="Show a job, and how far it is.")
    @with_reach
    @click.argument("job_id", metavar="ID")
    @OUTPUT
    def show_one(reach: ReachGateway, job_id: str, output: str | None) -> None:
        """Show what a job does, which records it means, and how far it is."""
        with reach() as found:
            _show_job(output, found.job(job_id))

    @jobs.command("start", short_help="Start a job.", help=_START_HELP.format(**words))
    @with_reach
    @_start_options
    def start(reach: ReachGateway, dry_run: bool, yes: bool, follow: bool, output: str | None, **asked: Any) -> int:
        return _start(reach, _asked(**asked), dry_run=dry_run, yes=yes, follows=follow, output=output)

    @jobs.command("follow", short_help="Show a job's progress until it is over.")
    @with_reach
    @click.argument("job_id", metavar="ID")
    @OUTPUT
    def follow(reach: ReachGateway, job_id: str, output: str | None) -> int:
        """Show the progress of a job on the standard error until it is over, and then the job.

        Ctrl-C ends the watching, not the job. A gateway that is started anew meanwhile is waited for, up to a minute.

        \b
        Exit codes:
          0  it is done
          1  it failed, or was stopped
        """
        return _show_ended(output, followed(reach, job_id))

    @jobs.command("stop", short_help="Stop a job; what it has written stays.")
    @with_reach
    @click.argument("job_id", metavar="ID")
    @OUTPUT
    def stop(reach: ReachGateway, job_id: str, output: str | None) -> None:
        """Stop a job, wherever it is under way. What it has written stays."""
        with reach() as found:
            _show_job(output, found.stop_job(job_id))

    return jobs


jobs = jobs_group(at_gateway, "delaytopic", "shop/reminders")


def _asked(
    due_from: str | None,
    due_before: str | None,
    id_prefix: str | None,
    key_prefix: str | None,
    partition: int | None,
    job_id: str | None,
    **others: Any,
) -> dict[str, Any]:
    now_ms = _now_ms()
    selector = {
        "dueFrom": before_ms(due_from, now_ms=now_ms, option="--due-from") if due_from is not None else None,
        "dueBefore": before_ms(due_before, now_ms=now_ms) if due_before is not None else None,
        "idPrefix": id_prefix,
        "keyPrefix": key_prefix,
        "partition": partition,
    }
    return new_job(job_id or uuid.uuid4().hex[:12], selector=selector, **others)


def _start(
    reach: ReachGateway, document: dict[str, Any], *, dry_run: bool, yes: bool, follows: bool, output: str | None
) -> int:
    """Count, ask and start. Returns the exit code."""
    if not (dry_run or yes or sys.stdin.isatty()):
        raise InputError("nobody is there to be asked whether it is meant so: give --yes, or --dry-run to count only")
    with reach() as found:
        if dry_run or not yes:
            count = found.count_job(document)
            if dry_run:
                show(output, count, [count_text(count)])
                return 0
            echo(count_text(count), err=True)
            if not click.confirm(f"{document['action']} them?", err=True):
                echo("nothing was started", err=True)
                return ProgramError.exit_code
        try:
            job = found.start_job(document)
        except GatewayUnreachableError as error:
            again = f"the job may have begun: with --id {document['id']} it is started once, however often asked for"
            raise GatewayUnreachableError(f"{error}; {again}") from error
    if follows:
        return _show_ended(output, followed(reach, job["id"]))
    _show_job(output, job)
    return 0


def followed(reach: ReachGateway, job_id: str, *, pause: Callable[[float], None] = time.sleep) -> Job:
    """Tell the progress of a job until it is over, and return it. Raises `ProgramError`."""
    job: Job | None = None
    heard_s, told = time.monotonic(), ""
    while job is None or job["state"] == RUNNING:
        try:
            with reach() as found:
                while job is None or job["state"] == RUNNING:
                    if job is not None:
                        pause(LOOK_S)
                    job, heard_s = found.job(job_id), time.monotonic()
                    if (text := progress_text(job)) != told:
                        echo(text, err=True)
                    told = text
        except _FINAL:
            raise
        except ProgramError as error:
            if job is None or time.monotonic() - heard_s > SILENT_S:
                raise
            if (text := f"{error}; asking again") != told:
                echo(text, err=True)
            told = text
            pause(LOOK_S)
    return job


def _show_ended(output: str | None, job: Job) -> int:
    _show_job(output, job)
    return 0 if job["state"] == DONE else ProgramError.exit_code


def _show_job(output: str | None, job: Job) -> None:
    show(output, job, job_lines(job, now_ms=_now_ms()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
