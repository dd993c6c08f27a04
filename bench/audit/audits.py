"""Audits of hours as processes, which have to find every record."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from bench.audit.topics import Hour, write_documents
from bench.audit.watch import Cost, run_watched


def audit(hours: Sequence[Hour], folder: Path) -> Cost:
    """Audit DelayTopics of one Kafka in one run."""
    file = write_documents(hours, folder)
    command = [sys.executable, "-m", "delaytopic_cli", "audit", "run", "-f", str(file)]
    places = ["--ledger", (folder / "ledger").as_uri(), "--output", str(folder / "report")]
    judging = ["-b", hours[0].bootstrap_servers, "--any-clock", "--window", "3h", "--memory", "1g"]
    cost = run_watched([*command, *places, *judging])
    for hour in hours:
        report = json.loads((folder / "report" / "bench" / hour.name / "report.json").read_text(encoding="utf-8"))
        if report["verdict"] != "Met" or report["counts"]["delivered"] != hour.records:
            raise click.ClickException(f"the audit of {hour.name} said {report['sentence']}")
    return cost
