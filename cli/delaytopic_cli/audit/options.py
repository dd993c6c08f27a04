"""Options of the `audit` commands, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from delaytopic_api import Duration, Settings
from delaytopic_api.errors import InvalidText
from delaytopic_audit.model import Exclusion, Rules, Threshold, default_grace_ms
from delaytopic_audit.report import CLOCK_CHANGE_MS, LONGEST_MS
from delaytopic_cli.commands.options import split_pair

F = TypeVar("F", bound=Callable[..., Any])
DAY_MS = 86_400_000


class DurationOption(click.ParamType[Duration]):
    """A duration as in the YAML."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        """Read `90s`, `1h30m`."""
        try:
            return value if isinstance(value, Duration) else Duration(str(value))
        except InvalidText as error:
            self.fail(str(error), param, ctx)


def file_option(command: F) -> F:
    """Add the option for the DelayTopics' documents."""
    return click.option(
        "-f",
        "--file",
        required=True,
        metavar="FILE",
        help="YAML with the DelayTopics, or a folder of such files; - for standard input.",
    )(command)


def ledger_options(command: F) -> F:
    """Add the options for ledger, outputs and the report's window."""
    return _options(
        command,
        click.option(
            "--ledger",
            default="audit-ledger",
            show_default=True,
            metavar="PLACE",
            help="Folder or URL for what runs remember of all DelayTopics: any that Spark's file systems take.",
        ),
        click.option(
            "--output",
            default="audit-report",
            show_default=True,
            metavar="PLACE",
            help="Folder or URL for the reports: any that Spark's file systems take.",
        ),
        click.option("--window", type=DurationOption(), help="What the report covers. Default: the SLO's own window."),
        click.option("--push", metavar="URL", help="Push the metrics to this Prometheus push gateway, too."),
        click.option(
            "--exit-zero",
            is_flag=True,
            help="End with 0 when an objective was missed, too, or there is no verdict on some: the job did its work.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Say only the verdict."),
    )


def spark_options(command: F) -> F:
    """Add the options for Spark."""
    return _options(
        command,
        click.option(
            "--master", default="local[*]", show_default=True, help="Spark's master; spark:// or k8s:// for others."
        ),
        click.option(
            "--executor-pod",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Template of executor pods, for a driver that is in a pod itself. With a master k8s://.",
        ),
        click.option(
            "--min-executors", type=click.IntRange(min=1), default=1, show_default=True, help="Pods to begin with."
        ),
        click.option(
            "--max-executors", type=click.IntRange(min=1), default=4, show_default=True, help="The most of them."
        ),
        click.option(
            "--memory", default="1g", show_default=True, help="Heap of a local run, or of the driver of executor pods."
        ),
        click.option(
            "--jars",
            default="",
            metavar="JAR,...",
            callback=lambda _ctx, _param, value: [jar for jar in value.split(",") if jar],
            help="Jars for Spark, such as those of S3.",
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar="NAME=VALUE",
            callback=lambda _ctx, _param, pairs: dict(split_pair(pair, "--conf") for pair in pairs),
            help="A setting of Spark's, or with spark.hadoop. before it of Hadoop's, such as for S3. Repeatable.",
        ),
    )


def rules_of(
    settings: Settings, grace: Duration | None, loss_horizon: Duration | None, retention: Duration | None
) -> Rules:
    """Return the rules of the audit from the DelayTopic's SLO and the options."""
    slo = settings.slo
    longest_ms = max(each.lateness.ms for each in slo.lateness_objectives)
    horizon_ms = loss_horizon.ms if loss_horizon is not None else DAY_MS
    # With a calendar, the period before is reported, too.
    budget_ms = 2 * LONGEST_MS[slo.calendar] if slo.calendar is not None else slo.window.ms
    budget_ms += CLOCK_CHANGE_MS if slo.time_zone is not None else 0
    return Rules(
        lateness_ms=slo.lateness.ms,
        grace_ms=grace.ms if grace is not None else default_grace_ms(longest_ms),
        objective=slo.objective,
        window_ms=slo.window.ms,
        calendar=slo.calendar,
        time_zone=slo.time_zone,
        guarantee=settings.guarantee,
        tells=settings.outcomes is not None,
        loss_horizon_ms=horizon_ms,
        retention_ms=retention.ms if retention is not None else budget_ms + horizon_ms,
        exclusions=[
            Exclusion(from_ms=each.start.ms, until_ms=each.until.ms, reason=each.reason) for each in slo.exclusions
        ],
        thresholds=[
            Threshold(name=each.name, lateness_ms=each.lateness.ms, objective=each.objective) for each in slo.thresholds
        ],
    )


def _options(command: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
