"""`make report`: the demo's records and its crash, audited by Spark, and the report left open to look at.

python -m delaytopic_cli.audited_demo [--output DIR] [--no-open]
"""

from __future__ import annotations

import signal
import sys
import time
import webbrowser
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import click

from delaytopic_api import Settings
from delaytopic_api.errors import ApiError
from delaytopic_api.relay import KafkaClient
from delaytopic_audit.audit import Audit, Audited, Options
from delaytopic_audit.errors import AuditError
from delaytopic_audit.model import Report
from delaytopic_audit.outputs import write_outputs
from delaytopic_audit.runtime.session import spark_session
from delaytopic_cli.audit.options import rules_of
from delaytopic_cli.audit.publishing import EXIT_CODES, clock_ms, fail, show_progress
from delaytopic_gateway.client.kafka_clients import producer
from delaytopic_gateway.client.sending import Sending
from delaytopic_gateway.client.topics import create_topics
from delaytopic_local.demo.__main__ import EXAMPLE
from delaytopic_local.demo.arrivals import ArrivalClock
from delaytopic_local.demo.scenario import Scenario
from delaytopic_local.errors import RelayError
from delaytopic_local.servers.running import Servers, data_directory, running_servers
from delaytopic_local.session.documents import read_settings, topic_plans
from delaytopic_local.session.session import needs_a_redis, relay_groups
from delaytopic_process.errors import ProgramError
from delaytopic_process.waiting import wait_until

WINDOW_MS = 10 * 60_000
ARRIVAL_SECONDS = 90.0
AHEAD_MS = 5 * 60_000
"""The audit judges as of so much later, when the minutes of the demo are closed."""


@click.command()
@click.option("-f", "--file", default=EXAMPLE, type=click.Path(exists=True, path_type=Path), help="The DelayTopic.")
@click.option("--output", default="audit-report", show_default=True, type=click.Path(path_type=Path), metavar="DIR")
@click.option("--open/--no-open", "opens", default=True, help="Show the report in a browser.")
def main(file: Path, output: Path, opens: bool) -> None:
    """Deliver 20,000 records with a crash on the way, audit the topics, and show the report."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = audited_demo(read_settings(file)[0], Scenario(), show_progress)
        folder = output / report.delay_topic.replace("/", ".")
        page = write_outputs(report, folder)[1].resolve()
    except AuditError as error:
        sys.exit(fail(error))
    except (ProgramError, ApiError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    click.echo(f"{report.verdict}: {report.sentence}\n  {page}")
    if opens and not webbrowser.open(page.as_uri()):
        click.echo("  no browser to show it in: open that file yourself")
    sys.exit(0 if report.verdict in EXIT_CODES else 1)


def audited_demo(settings: Settings, scenario: Scenario, progress: Callable[[str], None]) -> Report:
    """Run the records through a relay that is killed on the way, and audit them; raises ProgramError and AuditError."""
    with (
        data_directory(None) as directory,
        running_servers(directory, needs_redis=needs_a_redis(settings), progress=progress) as servers,
    ):
        create_topics(servers.bootstrap_servers, topic_plans([settings], on_own_cluster=False))
        remark = _deliver(settings, scenario, servers, progress)
        options = Options(ledger=str(directory / "ledger"), window_ms=WINDOW_MS, client={})
        progress("starting Spark")
        kafka = KafkaClient(bootstrap_servers=servers.bootstrap_servers)
        audited = Audited(settings, rules_of(settings, None, None, None))
        audit = Audit(spark_session(), [audited], kafka, options)
        report = audit.run(clock_ms() + AHEAD_MS, progress)[audited.name]
        audit.done()
        if isinstance(report, AuditError):
            raise report
        return report.model_copy(update={"remarks": [remark]})


def _deliver(settings: Settings, scenario: Scenario, servers: Servers, progress: Callable[[str], None]) -> str:
    """Send the records, and kill the relay while they are delivered; returns a sentence that says so."""
    client = {"bootstrap.servers": servers.bootstrap_servers}
    relay = relay_groups([settings], servers)[0].relays[0]
    relay.start()
    expected = scenario.records - scenario.cancelled
    arrivals = ArrivalClock(client, settings.target.topic)
    try:
        with arrivals:
            start_ms = clock_ms()
            records = chain(scenario.schedules(start_ms), scenario.corrections(start_ms), scenario.malformed())
            Sending(producer(client, settings.source.topic), settings.source.topic).send_all(records)
            progress(f"sent {scenario.records:,} records, due over {scenario.spread_ms // 1000} s")
            time.sleep(max(0, start_ms + scenario.kill_after_ms - clock_ms()) / 1000)
            relay.kill()
            relay.start()
            killed = f"The relay was killed after {arrivals.count:,} arrivals, and started again."
            progress(killed)
            if not wait_until(lambda: arrivals.count >= expected, timeout_seconds=ARRIVAL_SECONDS):
                raise RelayError(f"only {arrivals.count:,} of {expected:,} records arrived: {relay.last_words()}")
    finally:
        relay.stop()
    return killed


if __name__ == "__main__":
    main()
