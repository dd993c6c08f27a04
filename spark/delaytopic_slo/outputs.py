"""Edge: the files of a report, each whole or not at all, and the push gateway."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from delaytopic_slo.errors import SettingsError, SloError
from delaytopic_slo.model.report import Report
from delaytopic_slo.report.html.page import html_page
from delaytopic_slo.report.prometheus import prometheus_text

PUSH_TIMEOUT_SECONDS = 10


def write_outputs(report: Report, folder: Path) -> list[Path]:
    """report.json, report.html and metrics.prom in the folder; raises SettingsError when it can't be written."""
    texts = {
        "report.json": report.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n",
        "report.html": html_page(report),
        "metrics.prom": prometheus_text(report),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            unfinished = folder / f".{name}.unfinished"
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, folder / name)
    except OSError as error:
        raise SettingsError(f"--output: {folder} cannot be written to: {error.strerror}") from error
    return [folder / name for name in texts]


def push_metrics(report: Report, gateway: str) -> None:
    """To a Prometheus push gateway, in the place of what this DelayTopic pushed before; raises SloError."""
    url = f"{gateway.rstrip('/')}/metrics/job/delaytopic-slo/delay_topic@base64/{_base64(report.delay_topic)}"
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"--push takes the URL of a push gateway, such as http://pushgateway:9091, not {gateway}")
    request = Request(url, data=prometheus_text(report).encode(), method="PUT")
    try:
        with urlopen(request, timeout=PUSH_TIMEOUT_SECONDS):
            return
    except (URLError, OSError) as error:
        raise SloError(f"the push gateway at {gateway} did not take the metrics: {error}") from error


def _base64(text: str) -> str:
    return quote(urlsafe_b64encode(text.encode()).decode())
