"""`delaytopic slo report`: the last run's report again."""

from __future__ import annotations

from typing import Any

import click

from delaytopic_cli.errors import InputError
from delaytopic_cli.slo.options import ledger_options, spark_options
from delaytopic_cli.slo.publishing import clock_ms, publish, publish_failure
from delaytopic_slo.audit import report_of
from delaytopic_slo.errors import SloError
from delaytopic_slo.ledger.ledger import Ledger
from delaytopic_slo.runtime.session import spark_session


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
        spark = spark_session(master=given["master"], memory=given["memory"], jars=given["jars"])
        ledger = Ledger(spark, given["ledger"], given["name"])
        last = ledger.last_commit()
        if last is None:
            raise InputError(f"--ledger: no run of {given['name']} is in {ledger.place}")
        window_ms = given["window"].ms if given["window"] is not None else last.plan.rules.window_ms
        return publish(report_of(ledger, last, window_ms, clock_ms()), given)
    except SloError as error:
        return publish_failure(error, given["name"], given)
