"""Edge: the files of a report, each whole or not at all, in a folder or in a store, and the push gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from prometheus_client import push_to_gateway
from pyspark.sql import SparkSession

from delaytopic_audit.errors import AuditError, SettingsError
from delaytopic_audit.ledger.files import Files
from delaytopic_audit.model.report import Report
from delaytopic_audit.report.html.page import html_page
from delaytopic_audit.report.prometheus import prometheus_text, registry_of

PAGE: Final = "report.html"
PUSH_TIMEOUT_SECONDS = 10


def write_outputs(report: Report, folder: Path) -> list[Path]:
    """Write report.json, report.html and metrics.prom; raises SettingsError when the folder cannot be written to."""
    texts = _texts(report)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            unfinished = folder / f".{name}.unfinished"
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, folder / name)
    except OSError as error:
        raise SettingsError(f"--output: {folder} cannot be written to: {error.strerror}") from error
    return [folder / name for name in texts]


def put_outputs(report: Report, spark: SparkSession, url: str) -> str:
    """Write the same files where only Spark's file systems reach; return the place of the page. Raises LedgerError."""
    files = Files(spark, url)
    for name, text in _texts(report).items():
        files.put(name, text)
    return files.place(PAGE)


def _texts(report: Report) -> dict[str, str]:
    return {
        "report.json": report.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n",
        PAGE: html_page(report),
        "metrics.prom": prometheus_text(report),
    }


def push_metrics(report: Report, gateway: str) -> None:
    """Put the metrics to a Prometheus push gateway, in the place of those that this DelayTopic pushed before.

    Raises AuditError.
    """
    if not gateway.startswith(("http://", "https://")):
        raise SettingsError(f"--push takes the URL of a push gateway, such as http://pushgateway:9091, not {gateway}")
    grouping = {"delay_topic": report.delay_topic}
    try:
        push_to_gateway(gateway, "delaytopic-audit", registry_of(report), grouping, timeout=PUSH_TIMEOUT_SECONDS)
    except OSError as error:
        raise AuditError(f"the push gateway at {gateway} did not take the metrics: {error}") from error
