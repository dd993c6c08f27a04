"""The documents of files, as far as the operator is concerned. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delaytopic_api import DelayClass
from delaytopic_api.documents import API_VERSION
from delaytopic_api.errors import ApiError, Problem
from delaytopic_api.loading import expand_list, validate
from delaytopic_process.errors import ProgramError

Document = dict[str, Any]


class DocumentsUnreadable(ProgramError):
    """Documents that no plan can be made of; the text has a line for each thing to change."""


@dataclass(frozen=True)
class Documents:
    """The documents by kind, in the order of the files; each object has a name, and DelayClasses are valid."""

    topics: Sequence[Document]
    classes: Sequence[Document]
    namespaces: Sequence[Document]
    recurring: Sequence[Document] = ()
    others: int = 0
    """Documents that are none of the operator's."""


def sorted_out(contents: Iterable[tuple[str, object]], namespace: str) -> Documents:
    """Return the documents by kind; each comes with the name of its file. Raises `DocumentsUnreadable`."""
    topics, classes, namespaces, recurring, others = [], [], [], [], 0
    for origin, document in _flat(contents):
        kind = document.get("kind")
        if kind == "DelayTopic":
            topics.append(_placed(origin, document, namespace))
        elif kind == "DelayClass":
            classes.append(_valid_class(origin, document))
        elif kind == "Namespace":
            namespaces.append(_named(origin, document))
        elif kind == "RecurringRecord":
            recurring.append(_placed(origin, document, namespace))
        else:
            others += 1
    if not (topics or classes or recurring):
        raise DocumentsUnreadable("the files hold no DelayTopic, no DelayClass and no RecurringRecord")
    _refuse_doubles([*topics, *classes, *recurring])
    return Documents(topics, classes, namespaces, recurring, others)


def name_of(document: Mapping[str, Any]) -> str:
    """Return `DelayTopic shop/reminders`."""
    metadata = document["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{document['kind']} {place}{metadata['name']}"


def _flat(contents: Iterable[tuple[str, object]]) -> Iterator[tuple[str, Document]]:
    """Yield the documents without empty ones, and the items of lists in the place of the lists."""
    for origin, content in contents:
        for place, document in expand_list(origin, content):
            if not isinstance(document, Mapping):
                raise DocumentsUnreadable(str(Problem("", "each document must be a mapping of fields", place)))
            yield place, dict(document)


def _named(origin: str, document: Document) -> Document:
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise DocumentsUnreadable(str(Problem("metadata.name", "is required", f"{origin}: {document.get('kind')}")))
    return document


def _placed(origin: str, document: Document, namespace: str) -> Document:
    metadata = _named(origin, document)["metadata"]
    return {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def _valid_class(origin: str, document: Document) -> Document:
    named = {"apiVersion": API_VERSION, **_named(origin, document)}
    try:
        validate(DelayClass, named, f"{origin}: DelayClass {named['metadata']['name']}")
    except ApiError as error:
        raise DocumentsUnreadable(str(error)) from error
    return named


def _refuse_doubles(documents: Sequence[Document]) -> None:
    names = [name_of(document) for document in documents]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise DocumentsUnreadable(f"the files hold {', '.join(double)} more than once")
