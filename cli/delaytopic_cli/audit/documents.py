"""Edge: the DelayTopics that an audit is about, from files, from standard input, or as kubectl lists them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from delaytopic_api import DelayClass, DelayTopic, Settings, class_for, load_documents, load_relay_config, resolve
from delaytopic_api.errors import InvalidDocument, Problem
from delaytopic_api.loading import AnyDocument, parse_yaml
from delaytopic_api.relay import KafkaClient
from delaytopic_audit.runtime.executor_pods import ExecutorPods
from delaytopic_process.errors import InputError

STANDARD_INPUT = "-"
_ENDINGS = (".yaml", ".yml")


def audited_topics(file: str, name: str | None, *, may_be_none: bool = False) -> list[Settings]:
    """Return the settings in force for each DelayTopic of the file, or for the one named `namespace/name`.

    `-` is standard input, and a folder stands for the YAML files directly in it. A list, as
    `kubectl get delaytopics,delayclasses -A -o yaml` prints it, counts as its items. Without any DelayTopic nothing is
    returned where there `may_be_none`.
    Raises InputError, and ApiError with the path of each wrong field.
    """
    documents = _documents(file)
    classes = [document for document in documents if isinstance(document, DelayClass)]
    topics = [document for document in documents if isinstance(document, DelayTopic)]
    if may_be_none and not topics:
        return []
    chosen = [topic for topic in topics if name in (None, topic.full_name, topic.metadata.name)]
    if not chosen:
        known = ", ".join(topic.full_name for topic in topics) or "none"
        raise InputError(f"{file} holds no DelayTopic {name or ''}; it holds: {known}".replace("  ", " "))
    return [resolve(topic, class_for(topic, classes)) for topic in chosen]


def full_name(settings: Settings) -> str:
    """Return `namespace/name` of the DelayTopic."""
    return f"{settings.namespace}/{settings.name}"


def kafka_of(relay_config: Path) -> KafkaClient:
    """Return the `kafka` section of a RelayConfig: the way the relays reach Kafka, secrets as files."""
    try:
        text = relay_config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--relay-config: {relay_config} cannot be read: {error}") from error
    return load_relay_config(text, str(relay_config)).kafka


def executors_of(template: Path | None, least: int, most: int) -> ExecutorPods | None:
    """Return the executor pods that the options ask for; None without a template. Raises InputError, and ApiError."""
    if template is None:
        return None
    if least > most:
        raise InputError(f"--min-executors: {least} is more than --max-executors ({most})")
    documents = [each for each in parse_yaml(_text(str(template)), str(template)) if each is not None]
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise InputError(f"--executor-pod: {template} must hold one pod")
    return ExecutorPods(str(template), documents[0], least, most)


def _documents(place: str) -> list[AnyDocument]:
    """Return the documents of the file, or of all files of the folder. Raises InputError, and InvalidDocument."""
    if place == STANDARD_INPUT or not Path(place).is_dir():
        return load_documents(_text(place), place)
    found, problems = dict[tuple[str, str], str](), list[Problem]()
    documents = list[AnyDocument]()
    for file in _yaml_files(Path(place)):
        try:
            of_file = load_documents(_text(file), file)
        except InvalidDocument as error:
            problems += error.problems
            continue
        for document in of_file:
            name = document.metadata.name if isinstance(document, DelayClass) else document.full_name
            other = found.setdefault((document.kind, name), file)
            if other != file:
                said = f"is in {other}, too; each document needs a name of its own"
                problems.append(Problem("metadata.name", said, f"{file}: {document.kind} {name}"))
        documents += of_file
    if problems:
        raise InvalidDocument(problems)
    return documents


def _yaml_files(folder: Path) -> list[str]:
    """Return the YAML files directly in the folder; not those that begin with a dot, as copies of mounted ones do."""
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in _ENDINGS and each.is_file())
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error}") from error
    return [str(each) for each in files if not each.name.startswith(".")]


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
