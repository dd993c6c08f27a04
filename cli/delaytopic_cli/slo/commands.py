"""The commands of `delaytopic slo`: run, report, prepare."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NoReturn

import click
from pyspark.sql import SparkSession

from delaytopic_api import Duration, Settings
from delaytopic_api.relay import KafkaClient
from delaytopic_cli.command_line import NearChoice
from delaytopic_cli.commands.options import client_settings, kafka_options, split_pair
from delaytopic_cli.errors import InputError
from delaytopic_cli.slo.documents import audited_topics, executors_of, kafka_of
from delaytopic_cli.slo.options import DurationOption, ledger_options, rules_of, spark_options
from delaytopic_cli.slo.publishing import clock_ms, fail, is_url, publish, publish_failure, show_progress, tell_local
from delaytopic_slo.audit import Audit, Options, Reader, check_topics, report_of
from delaytopic_slo.errors import SloError
from delaytopic_slo.ledger import Ledger
from delaytopic_slo.pipeline import Progress, silent
from delaytopic_slo.runtime.java_archive import make_archive
from delaytopic_slo.runtime.session import spark_session

SOONEST_MS: Final = 1_000


@click.command(short_help="Read what is new, judge it, and write the report.")
@click.option("-f", "--file", required=True, metavar="FILE", help="YAML with the DelayTopics; - for standard input.")
@click.option("--name", metavar="NAMESPACE/NAME", help="Only this DelayTopic of the file.")
@kafka_options
@click.option(
    "--relay-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Reach Kafka as this relay's configuration does, secrets included.",
)
@ledger_options
@click.option(
    "--grace", type=DurationOption(), help="Judge a minute so long after its end. Default: the longest lateness and 1m."
)
@click.option("--loss-horizon", type=DurationOption(), help="Until then a loss is provisional. Default: 24h.")
@click.option("--retention", type=DurationOption(), help="Of the ledger. Default: SLO window and loss horizon.")
@click.option("--since", type=DurationOption(), help="First run: begin so long ago. Default: with the first record.")
@click.option("--restart", is_flag=True, help="Begin anew: after topics were made anew, or records expired unread.")
@click.option("--every", type=DurationOption(), help="Go on until told to end, and audit so often. Default: once.")
@click.option("--any-clock", is_flag=True, help="Take CreateTime for when records arrived.")
@click.option(
    "--reader",
    type=NearChoice([str(each) for each in Reader]),
    default=str(Reader.CLIENT),
    show_default=True,
    help="Who reads Kafka: the relays' client library, or Spark's official connector.",
)
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Audit so many DelayTopics of the file at once, with one Spark: for a master that has processors to spare.",
)
@spark_options
def run(**given: Any) -> int:
    """Audit the DelayTopics of a file, with one Spark: each run goes on where the last one ended.

    S3 takes its credentials from the environment, as AWS_ACCESS_KEY_ID, or as --conf says.

    \b
    Examples:
      delaytopic slo run -f examples/reminders.yaml --window 1h -b broker-1:9092
      kubectl get delaytopics,delayclasses -A -o yaml | delaytopic slo run -f - --ledger s3a://audits/ledger
      delaytopic slo run -f delaytopic.yaml -b broker-1:9092 --every 1m --push http://pushgateway:9091
      spark-submit --driver-memory 2g .../delaytopic_cli/__main__.py slo run -f delaytopic.yaml
    """
    topics = audited_topics(given["file"], given["name"])
    _refuse_contradictions(given, len(topics))
    kafka, client = _kafka_client(given)
    progress = silent if given["quiet"] else show_progress
    # As Ctrl-C: the first process of a container ignores what it has no handler for, and its pod waits to be killed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Without Spark no store takes a report that there is no verdict; and who goes on needs it anyway.
    needs_spark = is_url(given["output"]) or given["every"] is not None
    audited, codes = (topics, []) if needs_spark else _with_topics(topics, kafka, client, given)
    if not audited:
        return max(codes)
    try:
        progress("starting Spark")
        spark = _spark(given)
    except SloError as error:
        return publish_failure(error, _name(topics[0]), given)

    def audit(settings: Settings) -> int:
        return _audit(spark, settings, kafka, client, given, progress)

    try:
        if given["every"] is not None:
            _again_and_again(given["every"], lambda: _each(spark, audit, audited, given["parallel"]))
        return max([*codes, *_each(spark, audit, audited, given["parallel"])])
    finally:
        if given["executor_pod"] is not None:
            # The container ends with this process, and Java with it: executors are removed before.
            spark.stop()


def _refuse_contradictions(given: dict[str, Any], topics: int) -> None:
    """Raise InputError for options that make no sense beside others, or for so many DelayTopics."""
    if given["status_file"] and topics > 1:
        raise InputError("--status-file is for one DelayTopic: choose it with --name")
    if given["every"] is None:
        return
    if given["restart"]:
        raise InputError("--restart begins anew once: run it without --every first")
    if given["every"].ms < SOONEST_MS:
        raise InputError(f"--every: {given['every']} is less than 1s: give 1s or more")


def _with_topics(
    topics: Sequence[Settings], kafka: KafkaClient, client: dict[str, str], given: dict[str, Any]
) -> tuple[list[Settings], list[int]]:
    """Return what can be audited, and the exit codes of the others: Spark need not start to say why."""
    now_ms, audited, codes = clock_ms(), list[Settings](), list[int]()
    for settings in topics:
        try:
            refused = check_topics(settings, kafka, _options(settings, client, given, now_ms), now_ms)
        except SloError as error:
            codes.append(publish_failure(error, _name(settings), given))
            continue
        if refused is None:
            audited.append(settings)
        else:
            codes.append(publish(refused, given))
    return audited, codes


def _again_and_again(every: Duration, audit_all: Callable[[], object]) -> NoReturn:
    """Audit so often. The process may be ended at any moment: what a run has begun, the next one carries out."""
    while True:
        started_s = monotonic()
        audit_all()
        sleep(max(0.0, started_s + every.ms / 1_000 - monotonic()))


def _each(spark: SparkSession, audit: Callable[[Settings], int], topics: list[Settings], parallel: int) -> list[int]:
    """Return the exit codes of the audits of all topics, so many at once."""
    if parallel == 1:
        return [audit(settings) for settings in topics]
    pool = ThreadPoolExecutor(parallel, thread_name_prefix="audit")
    try:
        return list(pool.map(audit, topics))
    except BaseException:
        # Of what is under way, Spark's part would be waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        spark.sparkContext.cancelAllJobs()
        raise


def _spark(given: dict[str, Any]) -> SparkSession:
    return spark_session(
        master=given["master"],
        memory=given["memory"],
        jars=given["jars"],
        conf=given["conf"],
        executors=executors_of(given["executor_pod"], given["min_executors"], given["max_executors"]),
    )


def _audit(
    spark: SparkSession,
    settings: Settings,
    kafka: KafkaClient,
    client: dict[str, str],
    given: dict[str, Any],
    progress: Progress,
) -> int:
    """Audit one DelayTopic: what goes wrong with it is no matter of the others."""
    now_ms, name = clock_ms(), _name(settings)
    progress(f"{name}: auditing")
    try:
        audit = Audit(spark, settings, kafka, _options(settings, client, given, now_ms))
        result = audit.run(now_ms, lambda line: progress(f"{name}: {line}"))
        code = publish(result, given, spark)
        tell_local(result, settings, kafka.bootstrap_servers)
        audit.done()
    except SloError as error:
        return publish_failure(error, name, given)
    return code


def _options(settings: Settings, client: dict[str, str], given: dict[str, Any], now_ms: int) -> Options:
    return Options(
        ledger=given["ledger"],
        window_ms=_window_ms(given),
        rules=rules_of(settings, given["grace"], given["loss_horizon"], given["retention"]),
        client=client,
        reader=Reader(given["reader"]),
        trusts_any_clock=given["any_clock"],
        restarts=given["restart"],
        since_ms=now_ms - given["since"].ms if given["since"] is not None else None,
    )


def _window_ms(given: dict[str, Any]) -> int | None:
    """Return the report's window; None for the budget's."""
    window: Duration | None = given["window"]
    return window.ms if window is not None else None


def _name(settings: Settings) -> str:
    return f"{settings.namespace}/{settings.name}"


def _kafka_client(given: dict[str, Any]) -> tuple[KafkaClient, dict[str, str]]:
    """Return the connection to Kafka, and further settings of its client."""
    if given["relay_config"] is not None:
        if given["bootstrap_servers"] is not None:
            raise InputError("give --relay-config or --bootstrap-servers, not both")
        return kafka_of(given["relay_config"]), dict(split_pair(pair, "-X") for pair in given["settings"])
    settings = client_settings(given["bootstrap_servers"], given["settings"])
    return KafkaClient(bootstrap_servers=settings["bootstrap.servers"]), settings


@click.command(short_help="Write the last run's report again, for another window.")
@click.option("--name", required=True, metavar="NAMESPACE/NAME", help="The DelayTopic.")
@ledger_options
@spark_options
def report(**given: Any) -> int:
    """Write the report from the ledger alone: Kafka is not asked.

    \b
    Example:
      delaytopic slo report --name shop/order-reminders --window 24h
    """
    try:
        spark = _spark(given)
        ledger = Ledger(spark, given["ledger"], given["name"])
        last = ledger.last_commit()
        if last is None:
            raise InputError(f"--ledger: no run of {given['name']} is in {ledger.place}")
        return publish(report_of(ledger, last, _window_ms(given), clock_ms()), given, spark)
    except SloError as error:
        return publish_failure(error, given["name"], given)


@click.command(short_help="Let Java learn once what audits do: they take less time.")
def prepare() -> int:
    """Audit made-up records, and keep what Java learned for the audits of this machine.

    It takes a minute or two, and 250 MB below $XDG_CACHE_HOME or ~/.cache, needs no Kafka, and changes no result. An
    archive is for one version of Java, Spark and delaytopic: audits of other versions do without.

    \b
    Example:
      delaytopic slo prepare && delaytopic slo run -f examples/reminders.yaml
    """
    try:
        file = make_archive()
    except SloError as error:
        return fail(error)
    click.echo(f"{file} ({file.stat().st_size // 1_000_000} MB)")
    return 0
