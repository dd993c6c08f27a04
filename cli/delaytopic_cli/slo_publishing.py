"""What the `slo` commands do with a report, or with an error in its place."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from delaytopic_slo.errors import SloError
from delaytopic_slo.outputs import push_metrics, write_outputs
from delaytopic_slo.report_model import Report, Verdict

CANNOT_JUDGE = 2
EXIT_CODES = {Verdict.MET: 0, Verdict.MISSED: 1, Verdict.CANNOT_JUDGE: CANNOT_JUDGE}
_COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.CANNOT_JUDGE: "yellow"}
_STARTED_S = time.monotonic()


def publish(result: Report, given: dict[str, Any]) -> int:
    """Write the outputs, say the verdict, and return its exit code; raises SloError."""
    folder = Path(given["output"]) / result.delay_topic.replace("/", ".")
    files = write_outputs(result, folder)
    if given["push"]:
        push_metrics(result, given["push"])
    click.echo(f"{click.style(str(result.verdict), fg=_COLOURS[result.verdict], bold=True)}: {result.sentence}")
    for reason in result.reasons:
        click.echo(f"  {reason}")
    if not given["quiet"]:
        click.echo(f"  {files[1]}")
    return EXIT_CODES[result.verdict]


def fail(error: SloError) -> int:
    """Say why there is no verdict."""
    for line in str(error).splitlines() or [""]:
        click.echo(f"{click.style('error:', fg='red')} {line}", err=True)
    return CANNOT_JUDGE


def say(line: str) -> None:
    """A line of progress, with the seconds since the start."""
    click.echo(f"[{time.monotonic() - _STARTED_S:5.1f} s] {line}", err=True)


def clock_ms() -> int:
    """Now."""
    return time.time_ns() // 1_000_000
