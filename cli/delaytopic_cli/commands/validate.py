"""`delaytopic validate`: check documents by themselves, without a class, a cluster or a Kafka."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from delaytopic_api import DelayClass, DelayTopic, Problem, class_for, load_documents, resolve
from delaytopic_api.errors import ApiError, InvalidDocument, Refused
from delaytopic_api.values import unified
from delaytopic_process.command_line import NearChoice, echo, echo_json, fail
from delaytopic_process.errors import InputError


@click.command(short_help="Check DelayTopics and DelayClasses without a cluster.")
@click.option(
    "-f", "--file", "files", multiple=True, required=True, metavar="FILE",
    help="YAML with DelayTopics and DelayClasses; - is standard input. Repeatable.",
)  # fmt: skip
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", show_default=True)
def validate(files: tuple[str, ...], output: str) -> int:
    """Check each document as the API server would: fields, values, and rules between fields.

    A DelayTopic whose DelayClass is among the files is checked against that class, too. Nothing is asked of a cluster,
    of Kafka or of the operator: delaytopic plan does that. Exit codes: 0 valid, 2 not valid or not readable.

    \b
    Examples:
      delaytopic validate -f reminders.yaml
      delaytopic validate -f reminders.yaml -f class.yaml -o json
    """
    documents: list[DelayTopic | DelayClass] = []
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
    problems += [str(problem) for problem in [*_refusals(documents), *_collisions(documents)]]
    if output == "json":
        echo_json({"valid": not problems, "documents": len(documents), "problems": problems})
        return InputError.exit_code if problems else 0
    if problems:
        return fail("\n".join(problems), InputError.exit_code)
    echo("1 document is valid" if len(documents) == 1 else f"{len(documents):,} documents are valid")
    return 0


def _refusals(documents: Sequence[DelayTopic | DelayClass]) -> list[Problem]:
    """Return what the classes among the documents do not allow; a class that is elsewhere allows anything."""
    classes = [each for each in documents if isinstance(each, DelayClass)]
    known = {each.metadata.name for each in classes}
    found: list[Problem] = []
    for topic in documents:
        if isinstance(topic, DelayTopic) and topic.spec.delay_class_name in known:
            try:
                resolve(topic, class_for(topic, classes))
            except Refused as error:
                found += error.problems
    return found


def _collisions(documents: Sequence[DelayTopic | DelayClass]) -> Iterator[Problem]:
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
