"""The small document of `--status-file`: what of a report whoever writes a DelayTopic's status has to know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from delaytopic_cli.errors import InputError
from delaytopic_slo.model.report import Report
from delaytopic_slo.report.status import slo_condition, slo_status

LARGEST_BYTES: Final = 4_096
"""What Kubernetes keeps of a container's termination message."""
_CUT: Final = "..."


def status_document(report: Report, place: str | None) -> dict[str, Any]:
    """The verdict, `status.slo` and the condition `SLOMet`; `place` is where the whole report is."""
    return {
        "delayTopic": report.delay_topic,
        "verdict": str(report.verdict),
        "generatedAtMs": report.generated_at_ms,
        "slo": slo_status(report, place).to_document(),
        "condition": slo_condition(report, None, None).to_document(),
    }


def status_text(document: dict[str, Any]) -> str:
    """The document as JSON of at most `LARGEST_BYTES`; a longer one has its condition's message cut."""
    text = _json(document)
    excess = len(text.encode()) - LARGEST_BYTES
    if excess <= 0:
        return text
    condition = document["condition"]
    message = condition["message"][: -(excess + len(_CUT))] + _CUT
    return _json({**document, "condition": {**condition, "message": message}})


def write_status(report: Report, place: str | None, file: str) -> None:
    """Write over the file, in place, as a mounted one cannot be replaced; raises InputError."""
    try:
        Path(file).write_text(status_text(status_document(report, place)), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--status-file: {file} cannot be written: {error.strerror}") from error


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
