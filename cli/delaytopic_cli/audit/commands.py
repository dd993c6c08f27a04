"""The commands of `delaytopic audit`: run, report."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NoReturn

import click
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delaytopic_api import Duration, Settings
from delaytopic_api.relay import KafkaClient
from delaytopic_audit.audit import Audit, Audited, Options, Result, check_topics, reports_of
from delaytopic_audit.errors import AuditError, SparkMissingError
from delaytopic_audit.ledger import Ledger
from delaytopic_audit.pipeline import Progress, silent
from delaytopic_audit.runtime.session import spark_session
from delaytopic_cli.audit.documents import STANDARD_INPUT, audited_topics, executors_of, full_name, kafka_of
from delaytopic_cli.audit.options import DurationOption, file_option, ledger_options, rules_of, spark_options
from delaytopic_cli.audit.publishing import (
    CANNOT_JUDGE,
    clock_ms,
    fail,
    is_url,
    publish,
    publish_bug,
    publish_failure,
    show_progress,
    tell_failure,
    tell_local,
)
from delaytopic_cli.audit.rounds import Topics, audit_in_rounds
from delaytopic_cli.audit.serving import LONGEST_WAIT_S, Verdicts, serving
from delaytopic_cli.commands.options import client_settings, kafka_options, refuse_moved_clock, split_pair
from delaytopic_process.command_line import listen_address
from delaytopic_process.errors import InputError

SOONEST_MS: Final = 1_000


@click.command(short_help="Read what is new, judge it, and write the report.")
@file_option
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
@click.option(
    "--every", type=DurationOption(), help="Go on until told to end, and read FILE and audit so often. Default: once."
)
@click.option(
    "--serve",
    metavar="HOST:PORT",
    help="Serve /verdicts over HTTP there, such as on 0.0.0.0:8080, and end once they were kept, or after 10m.",
)
@click.option(
    "--tables",
    metavar="PLACE",
    help="Folder or s3a:// URL to publish verdicts, minutes and findings in, as tables of Delta Lake.",
)
@click.option("--any-clock", is_flag=True, help="Take CreateTime for when records arrived.")
@spark_options
def run(**given: Any) -> int:
    """Audit the DelayTopics of a file together: each run goes on where the last one ended.

    A ledger may have DelayTopics come and go: what it knows of those that a run is not for stays as it is.

    With --every, DelayTopics may come into FILE and go. While it cannot be used, those of before are audited.

    S3 takes its credentials from the environment, as AWS_ACCESS_KEY_ID, or as --conf says.

    \b
    Examples:
      delaytopic audit run -f examples/reminders.yaml --window 1h -b broker-1:9092
      kubectl get delaytopics,delayclasses -A -o yaml | delaytopic audit run -f - --ledger s3a://audits/ledger
      delaytopic audit run -f delaytopic.yaml -b broker-1:9092 --every 1m --push http://pushgateway:9091
      delaytopic audit run -f delaytopics/ --relay-config relay.yaml --serve 0.0.0.0:8080
      delaytopic audit run -f delaytopic.yaml -b broker-1:9092 --tables s3a://audits/tables
      spark-submit --driver-memory 2g .../delaytopic_cli/__main__.py audit run -f delaytopic.yaml
    """
    _refuse_contradictions(given)
    topics = _topics(given)
    kafka, client = _kafka_client(given)
    refuse_moved_clock(client)
    # As Ctrl-C: the first process of a container ignores what it has no handler for, and its pod waits to be killed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def audit_all(spark: SparkSession, topics: Topics) -> list[int]:
        return _audit(spark, topics, kafka, client, given)

    if given["every"] is not None:
        return _go_on(topics, audit_all, given)
    if given["serve"] is None:
        return _once(topics, kafka, client, audit_all, given)
    return _serve(lambda: _once(topics, kafka, client, audit_all, given), given)


def _once(
    topics: Topics,
    kafka: KafkaClient,
    client: dict[str, str],
    audit_all: Callable[[SparkSession, Topics], list[int]],
    given: dict[str, Any],
) -> int:
    """Audit once, and return the exit code."""
    # Without Spark neither a store nor a table is told that there is no verdict.
    needs_spark = is_url(given["output"]) or given["tables"] is not None
    audited, codes = (topics, []) if needs_spark else _with_topics(topics, kafka, client, given)
    if not audited:
        return max(codes)
    return _with_spark(topics, given, lambda spark: _code_of([*codes, *audit_all(spark, audited)], given))


def _code_of(codes: list[int], given: dict[str, Any]) -> int:
    """Return the greatest exit code; with --exit-zero a verdict on any DelayTopic is success: they were told apart."""
    return 0 if given["exit_zero"] and 0 in codes else max(codes)


def _serve(audit: Callable[[], int], given: dict[str, Any]) -> int:
    """Audit, and serve the verdicts until their reader has kept them."""
    verdicts = given["verdicts"] = Verdicts()
    with serving(listen_address("--serve", given["serve"]), verdicts) as port:
        _progress(given)(f"serving verdicts on port {port}")
        code = audit()
        if not verdicts.await_kept(LONGEST_WAIT_S):
            # The next audit's verdicts take the place of these, and their page is at --output.
            _progress(given)(f"nobody has kept the verdicts for {LONGEST_WAIT_S / 60:.0f} minutes")
        return code


def _refuse_contradictions(given: dict[str, Any]) -> None:
    """Raise InputError for options that make no sense beside others."""
    if given["every"] is None:
        return
    if given["serve"] is not None:
        raise InputError("--serve is for an audit that ends: leave out --every")
    if given["restart"]:
        raise InputError("--restart begins anew once: run it without --every first")
    if given["every"].ms < SOONEST_MS:
        raise InputError(f"--every: {given['every']} is less than 1s: give 1s or more")


def _topics(given: dict[str, Any]) -> list[Settings]:
    """Return the DelayTopics of the file as it is now; raises InputError, and ApiError."""
    # Of those that go on, a file that is read again may have DelayTopics later.
    may_be_none = given["every"] is not None and given["file"] != STANDARD_INPUT
    return audited_topics(given["file"], given["name"], may_be_none=may_be_none)


def _with_topics(
    topics: Topics, kafka: KafkaClient, client: dict[str, str], given: dict[str, Any]
) -> tuple[list[Settings], list[int]]:
    """Return what can be audited, and the exit codes of the others: Spark need not start to say why."""
    now_ms = clock_ms()
    refused = check_topics(_audited(topics, given), kafka, _options(client, given, now_ms), now_ms)
    codes = [_publish(name, result, given) for name, result in refused.items()]
    return [each for each in topics if full_name(each) not in refused], codes


def _go_on(topics: Topics, audit_all: Callable[[SparkSession, Topics], list[int]], given: dict[str, Any]) -> int:
    """Audit in rounds until the process is told to end."""

    def audit_again_and_again(spark: SparkSession) -> NoReturn:
        audit_in_rounds(
            given["every"],
            topics,
            read=lambda: topics if given["file"] == STANDARD_INPUT else _topics(given),
            audit_all=lambda present: _insist_on_spark(spark, audit_all(spark, present)),
            clock_s=monotonic,
            sleep=sleep,
        )

    return _with_spark(topics, given, audit_again_and_again)


def _with_spark(topics: Topics, given: dict[str, Any], work: Callable[[SparkSession], int]) -> int:
    """Return what the work with Spark returns, or the code for that there is no verdict without Spark."""
    try:
        _progress(given)("starting Spark")
        spark = _spark(given)
    except AuditError as error:
        tell_failure(error, map(full_name, topics), given)
        return fail(error)
    try:
        return work(spark)
    except SparkMissingError as error:
        return fail(error)
    finally:
        if given["executor_pod"] is not None:
            # The container ends with this process, and Java with it: executors are removed before.
            spark.stop()


def _spark(given: dict[str, Any]) -> SparkSession:
    return spark_session(
        master=given["master"],
        memory=given["memory"],
        jars=given["jars"],
        conf=given["conf"],
        executors=executors_of(given["executor_pod"], given["min_executors"], given["max_executors"]),
    )


def _insist_on_spark(spark: SparkSession, codes: list[int]) -> None:
    """Raise SparkMissingError where audits could not judge as Spark has ended: no round would bring a verdict again."""
    if CANNOT_JUDGE in codes and has_ended(spark):
        raise SparkMissingError("Spark has ended: only a new process starts it again")


def has_ended(spark: SparkSession) -> bool:
    """Tell whether Spark's context or its Java is gone, as when memory was too little."""
    try:
        # A context that was stopped answers nothing.
        return spark.sparkContext.defaultParallelism < 1
    except (Py4JError, PySparkException, OSError):
        return True


def _audit(
    spark: SparkSession, topics: Topics, kafka: KafkaClient, client: dict[str, str], given: dict[str, Any]
) -> list[int]:
    """Audit the DelayTopics, and return the exit code of each: what goes wrong with one is no matter of the others."""
    now_ms, names = clock_ms(), [full_name(each) for each in topics]
    if not topics:
        return []
    try:
        audit = Audit(spark, _audited(topics, given), kafka, _options(client, given, now_ms))
        results = audit.run(now_ms, _progress(given))
    except AuditError as error:
        return [publish_failure(error, name, given) for name in names]
    except Exception as error:
        if given["every"] is None and given["serve"] is None:
            raise
        return [publish_bug(error, name, given) for name in names]
    codes = []
    for settings, name in zip(topics, names, strict=True):
        codes.append(_publish(name, results[name], given, spark))
        tell_local(results[name], settings, kafka.bootstrap_servers)
    # The run is done even if nothing could be published: the next one is to read on, and makes up for it.
    for step in (partial(_publish_tables, audit, results, given), audit.done):
        try:
            step()
        except AuditError as error:
            codes.append(fail(error))
    return codes


def _publish_tables(audit: Audit, results: Mapping[str, Result], given: dict[str, Any]) -> None:
    if given["tables"] is not None:
        _progress(given)("publishing tables")
        audit.publish(results, given["tables"], given["output"], clock_ms())


def _publish(name: str, result: Result, given: dict[str, Any], spark: SparkSession | None = None) -> int:
    """Write the report on a DelayTopic, or say why there is none, and return the exit code; raises InputError."""
    try:
        if isinstance(result, AuditError):
            raise result
        return publish(result, given, spark)
    except AuditError as error:
        return publish_failure(error, name, given)


def _audited(topics: Topics, given: dict[str, Any]) -> list[Audited]:
    """Return the DelayTopics with the rules that they are judged by."""
    times = (given["grace"], given["loss_horizon"], given["retention"])
    return [Audited(settings, rules_of(settings, *times)) for settings in topics]


def _progress(given: dict[str, Any]) -> Progress:
    return silent if given["quiet"] else show_progress


def _options(client: dict[str, str], given: dict[str, Any], now_ms: int) -> Options:
    return Options(
        ledger=given["ledger"],
        window_ms=_window_ms(given),
        client=client,
        trusts_any_clock=given["any_clock"],
        restarts=given["restart"],
        since_ms=now_ms - given["since"].ms if given["since"] is not None else None,
    )


def _window_ms(given: dict[str, Any]) -> int | None:
    """Return the report's window; None for the budget's."""
    window: Duration | None = given["window"]
    return window.ms if window is not None else None


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
      delaytopic audit report --name shop/order-reminders --window 24h
    """
    try:
        spark = _spark(given)
        ledger = Ledger(spark, given["ledger"])
        last = ledger.last_commit()
        found = {} if last is None else reports_of(ledger, last, [given["name"]], _window_ms(given), clock_ms())
        if given["name"] not in found:
            raise InputError(f"--ledger: no run of {given['name']} is in {ledger.place}")
        return publish(found[given["name"]], given, spark)
    except AuditError as error:
        return publish_failure(error, given["name"], given)
