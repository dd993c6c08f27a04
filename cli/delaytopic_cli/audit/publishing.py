"""Edge: the outcome of a `audit` command: files, metrics, the verdict on the terminal, and on its page."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from traceback import format_exception
from typing import Any, Final

import click
from pyspark.sql import SparkSession

from delaytopic_api import Settings
from delaytopic_audit.errors import AuditError
from delaytopic_audit.model import Report, Verdict
from delaytopic_audit.outputs import push_metrics, put_outputs, write_outputs
from delaytopic_audit.report import no_verdict, slo_condition, slo_status
from delaytopic_local.session.state import last_report, running_states
from delaytopic_process.command_line import echo, echo_lines, printable, styled

CANNOT_JUDGE = 2
EXIT_CODES = {Verdict.MET: 0, Verdict.MISSED: 1, Verdict.CANNOT_JUDGE: CANNOT_JUDGE}
_COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.CANNOT_JUDGE: "yellow"}
_STARTED_S = time.monotonic()
LARGEST_BYTES: Final = 4_096
"""The size of a verdict as it is served: the operator keeps those of thousands."""
_CUT: Final = "..."


def is_url(output: str) -> bool:
    """Tell whether reports go to a store that only Spark's file systems reach."""
    return "://" in output


def publish(result: Report, given: dict[str, Any], spark: SparkSession | None = None) -> int:
    """Write the outputs, say the verdict, and return its exit code; raises AuditError. A URL needs Spark."""
    # A folder for each namespace, so that a tenant may be let read its own and no others.
    folder = result.delay_topic
    if is_url(given["output"]):
        assert spark is not None
        page = put_outputs(result, spark, f"{given['output'].rstrip('/')}/{folder}")
    else:
        page = str(write_outputs(result, Path(given["output"]) / folder)[1])
    if given["push"]:
        push_metrics(result, given["push"])
    _tell(result, page, given)
    click.echo(f"{styled(str(result.verdict), fg=_COLOURS[result.verdict], bold=True)}: {printable(result.sentence)}")
    if result.exhaustion is not None:
        echo(f"  {result.exhaustion.sentence}")
    for each in result.thresholds:
        if each.exhaustion is not None:
            echo(f"  {each.objective}: {each.exhaustion.sentence}")
    for reason in result.reasons:
        echo(f"  {reason}")
    if not given["quiet"]:
        click.echo(f"  {page}")
    missed_is_success = given["exit_zero"] and result.verdict is Verdict.MISSED
    return 0 if missed_is_success else EXIT_CODES[result.verdict]


def tell_local(result: Report | AuditError, settings: Settings, bootstrap_servers: str) -> None:
    """Leave the report with the `delaytopic local` that runs this DelayTopic on this machine, for its console."""
    if isinstance(result, AuditError):
        return
    sources = [
        (state, {topic.source for topic in state.topics})
        for state in running_states()
        if state.bootstrap_servers == bootstrap_servers and state.directory is not None
    ]
    local = next((state for state, topics in sources if settings.source.topic in topics), None)
    if local is None or local.directory is None:
        return
    file = last_report(Path(local.directory), settings.namespace, settings.name)
    unfinished = file.with_suffix(".unfinished")
    try:
        file.parent.mkdir(exist_ok=True)
        unfinished.write_text(result.model_dump_json(by_alias=True, exclude_none=True), encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        # The session has ended meanwhile, or is somebody else's. The report is written where it was asked for.
        echo(f"the console of delaytopic local was not told: {error.strerror}", err=True)


def publish_failure(error: AuditError, delay_topic: str, given: dict[str, Any]) -> int:
    """Say why there is no verdict on the DelayTopic (`namespace/name`), as a verdict, too."""
    tell_failure(error, [delay_topic], given)
    return fail(error, delay_topic)


def tell_failure(error: AuditError, delay_topics: Iterable[str], given: dict[str, Any]) -> None:
    """Tell why there is no verdict on these DelayTopics, as a verdict on each."""
    for name in delay_topics:
        _tell(no_verdict(name, str(error).splitlines(), clock_ms()), None, given)


def publish_bug(error: Exception, delay_topic: str, given: dict[str, Any]) -> int:
    """Say in one line what ended an audit unexpectedly, after its traceback unless that is too much."""
    if not given["quiet"]:
        echo_lines("".join(format_exception(error)).rstrip("\n"), err=True)
    return publish_failure(AuditError(" ".join(f"{type(error).__name__}: {error}".split())), delay_topic, given)


def fail(error: Exception, delay_topic: str = "") -> int:
    """Say why there is no verdict."""
    begin = " ".join(word for word in (styled("error:", fg="red"), delay_topic and f"{delay_topic}:") if word)
    for line in str(error).splitlines() or [""]:
        click.echo(f"{begin} {printable(line)}", err=True)
    return CANNOT_JUDGE


def show_progress(line: str) -> None:
    """Print a line of progress, with the seconds since the start."""
    click.echo(f"[{time.monotonic() - _STARTED_S:5.1f} s] {line}", err=True)


def clock_ms() -> int:
    """Return the present time."""
    return time.time_ns() // 1_000_000


def status_document(report: Report, place: str | None) -> dict[str, Any]:
    """Return the verdict, `status.slo` and the condition `SLOMet`; `place` is where the whole report is."""
    return {
        "delayTopic": report.delay_topic,
        "verdict": str(report.verdict),
        "generatedAtMs": report.generated_at_ms,
        "slo": slo_status(report, place).to_document(),
        "condition": slo_condition(report, None, None).to_document(),
    }


def status_text(document: dict[str, Any]) -> str:
    """Return the document as JSON of at most `LARGEST_BYTES`; a longer one has its condition's message cut."""
    text = _json(document)
    excess = len(text.encode()) - LARGEST_BYTES
    if excess <= 0:
        return text
    condition = document["condition"]
    message = condition["message"][: -(excess + len(_CUT))] + _CUT
    return _json({**document, "condition": {**condition, "message": message}})


def _tell(report: Report, place: str | None, given: dict[str, Any]) -> None:
    """Give the verdict to whoever asks over HTTP."""
    if given.get("verdicts") is not None:
        given["verdicts"].put(status_document(report, place))


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
