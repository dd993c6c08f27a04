"""`delaytopic validate`: check documents by themselves, without a class, a cluster or a Kafka."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from delaytopic_api import (
    DelayClass,
    DelayTopic,
    Problem,
    RecurringRecord,
    Settings,
    class_for,
    load_documents,
    resolve,
)
from delaytopic_api.errors import ApiError, InvalidDocument, Refused
from delaytopic_api.loading import AnyDocument
from delaytopic_api.policy import recurring_refusals
from delaytopic_api.values import unified
from delaytopic_process.command_line import NearChoice, echo, echo_json, fail
from delaytopic_process.errors import InputError


@click.command(short_help="Check DelayTopics, DelayClasses and RecurringRecords without a cluster.")
@click.option(
    "-f", "--file", "files", multiple=True, required=True, metavar="FILE",
    help="YAML with DelayTopics, DelayClasses and RecurringRecords; - is standard input. Repeatable.",
)  # fmt: skip
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", show_default=True)
def validate(files: tuple[str, ...], output: str) -> int:
    """Check each document as the API server would: fields, values, and rules between fields.

    A DelayTopic whose DelayClass is among the files is checked against that class, too, and a RecurringRecord against
    its DelayTopic. Nothing is asked of a cluster, of Kafka or of the operator: delaytopic plan does that. Exit codes: 0
    valid, 2 not valid or not readable.

    \b
    Examples:
      delaytopic validate -f reminders.yaml
      delaytopic validate -f reminders.yaml -f class.yaml -o json
    """
    documents: list[AnyDocument] = []
    problems: list[str] = []
    for file in files:
        try:
            loaded = load_documents(_text(file), "standard input" if file == "-" else file)
        except InvalidDocument as error:
            problems += map(str, error.problems)
        except ApiError as error:
            problems.append(str(error))
        else:
            documents += loaded
    now_ms = time.time_ns() // 1_000_000
    problems += [str(problem) for problem in [*_refusals(documents, now_ms), *_collisions(documents)]]
    if output == "json":
        echo_json({"valid": not problems, "documents": len(documents), "problems": problems})
        return InputError.exit_code if problems else 0
    if problems:
        return fail("\n".join(problems), InputError.exit_code)
    echo("1 document is valid" if len(documents) == 1 else f"{len(documents):,} documents are valid")
    return 0


def _refusals(documents: Sequence[AnyDocument], now_ms: int) -> list[Problem]:
    """Return what the classes and DelayTopics among the documents do not allow; one that is elsewhere allows all."""
    classes = [each for each in documents if isinstance(each, DelayClass)]
    known = {each.metadata.name for each in classes}
    in_force: dict[str, Settings] = {}
    found: list[Problem] = []
    for topic in documents:
        if isinstance(topic, DelayTopic):
            is_known = topic.spec.delay_class_name in known
            try:
                in_force[topic.full_name] = resolve(topic, class_for(topic, classes) if is_known else None)
            except Refused as error:
                found += error.problems if is_known else ()
    for record in documents:
        if isinstance(record, RecurringRecord):
            settings = in_force.get(f"{record.metadata.namespace}/{record.spec.delay_topic}")
            found += recurring_refusals(record, settings, now_ms) if settings is not None else ()
    return found


def _collisions(documents: Sequence[AnyDocument]) -> Iterator[Problem]:
    """Yield the topics that Kafka takes for one of another DelayTopic with the same class, or the same servers."""
    seen: dict[tuple[str | None, str], tuple[str, DelayTopic]] = {}
    for document in documents:
        if not isinstance(document, DelayTopic):
            continue
        spec = document.spec
        kafka = spec.connection.bootstrap_servers if spec.connection is not None else spec.delay_class_name
        for field, name in spec.topics.items():
            other, owner = seen.setdefault((kafka, unified(name)), (name, document))
            if other != name and owner is not document:
                message = (
                    f"is {name}, and differs from {other} of {owner.full_name} in dots and underscores only: Kafka "
                    "takes one of the two"
                )
                yield Problem(f"spec.{field}", message, f"DelayTopic {document.full_name}")


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--file: {file} cannot be read: {error}") from error
