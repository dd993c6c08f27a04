"""Documents read from YAML, and written as YAML; each error names the document, the field's path and what is allowed
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

from pydantic import ValidationError

from delaytopic_api import documents as models
from delaytopic_api.documents.model import Model
from delaytopic_api.errors import InvalidDocument, Problem
from delaytopic_api.loading.problems import problems_of
from delaytopic_api.loading.yaml_text import parse_yaml, write_yaml
from delaytopic_api.relay.config import RelayConfig

M = TypeVar("M", bound=Model)

AnyDocument: TypeAlias = "models.DelayTopic | models.DelayClass | models.RecurringRecord"
"""A document of any kind that people apply."""
# Imported when one is read: a relay reads its own configuration alone.
_KINDS: Final[Mapping[str, Callable[[], type[AnyDocument]]]] = {
    "DelayTopic": lambda: models.DelayTopic,
    "DelayClass": lambda: models.DelayClass,
    "RecurringRecord": lambda: models.RecurringRecord,
}


def load_documents(text: str, origin: str = "") -> list[AnyDocument]:
    """All documents of a YAML text, in order; raises `InvalidDocument` with the problems of all of them.

    A list, as `kubectl get delaytopics,delayclasses -o yaml` prints it, counts as its items. `origin`, such as the
    file's name, comes first in each problem.
    """
    documents: list[AnyDocument] = []
    problems: list[Problem] = []
    for subject, content in _contents(text, origin):
        try:
            documents.append(load_document(content, subject))
        except InvalidDocument as error:
            problems += error.problems
    problems += _twice(documents, origin)
    if problems:
        raise InvalidDocument(problems)
    return documents


def load_document(content: object, subject: str = "") -> AnyDocument:
    """One parsed document, such as an object from the API server; raises `InvalidDocument`."""
    if not isinstance(content, Mapping):
        raise InvalidDocument([Problem("", "must be a mapping of fields", subject)])
    kind = content.get("kind")
    of_kind = _KINDS.get(kind) if isinstance(kind, str) else None
    if of_kind is None and _is_list(content):
        raise InvalidDocument([Problem("items", "must be a list", subject)])
    if of_kind is None:
        message = "is required" if kind is None else f'"{kind}" is not known here'
        raise InvalidDocument([Problem("kind", f"{message}; allowed: {', '.join(_KINDS)}", subject)])
    return validate(of_kind(), content, subject)


def load_relay_config(text: str, origin: str = "") -> RelayConfig:
    """The one document of a relay's configuration file; raises `InvalidDocument`."""
    contents = list(_contents(text, origin))
    if len(contents) != 1:
        raise InvalidDocument([Problem("", f"must hold one RelayConfig, not {len(contents)} documents", origin)])
    subject, content = contents[0]
    if not isinstance(content, Mapping) or content.get("kind") != "RelayConfig":
        raise InvalidDocument([Problem("kind", "must be RelayConfig", subject)])
    return validate(RelayConfig, content, subject)


def dump_yaml(document: Model) -> str:
    """The document as YAML, fields in the order of the model, without absent ones."""
    return write_yaml([document.to_document()])


def validate(model: type[M], content: Mapping[str, Any], subject: str = "") -> M:
    """The content as this model, by the names that documents use; raises `InvalidDocument`."""
    try:
        return model.model_validate(content, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidDocument(problems_of(error, model, subject)) from error


def expand_list(place: str, content: object) -> Iterator[tuple[str, object]]:
    """Yield a document behind its place, or each item of a list behind its own; nothing for an empty one."""
    if _is_list(content) and isinstance(content["items"], list):
        for number, item in enumerate(content["items"], 1):
            yield from expand_list(f"{place}, item {number}", item)
    elif content is not None:
        yield place, content


def _is_list(content: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(content, Mapping) and str(content.get("kind", "")).endswith("List") and "items" in content


def _contents(text: str, origin: str) -> Iterator[tuple[str, object]]:
    """Each document that is not empty, after how to speak of it."""
    for number, document in enumerate(parse_yaml(text, origin), 1):
        for place, content in expand_list(f"document {number}", document):
            yield _subject(content, place, origin), content


def _subject(content: object, place: str, origin: str) -> str:
    name = _name(content) if isinstance(content, Mapping) else None
    return ": ".join(part for part in (origin, name or place) if part)


def _name(content: Mapping[str, Any]) -> str | None:
    """`DelayTopic shop/reminders`, or None while the document does not say its kind and name."""
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = content if content.get("kind") == "RelayConfig" else {}
    kind, name, namespace = content.get("kind"), metadata.get("name"), metadata.get("namespace", "default")
    if not (isinstance(kind, str) and isinstance(name, str)):
        return None
    return f"{kind} {name}" if kind == "DelayClass" else f"{kind} {namespace}/{name}"


def _twice(documents: Sequence[AnyDocument], origin: str) -> list[Problem]:
    names = Counter(_name(document.to_document()) for document in documents)
    return [
        Problem("metadata.name", "is there twice; each document needs a name of its own", _prefixed(origin, str(name)))
        for name, count in names.items()
        if count > 1
    ]


def _prefixed(origin: str, name: str) -> str:
    return f"{origin}: {name}" if origin else name
