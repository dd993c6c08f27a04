"""YAML and JSON as Kubernetes reads them: plain data only, and a field that is written twice is an error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

import yaml

from delaytopic_api.errors import InvalidDocument, Problem
from delaytopic_api.loading.scalars import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, Scalar, as_json, resolved

try:
    from yaml import CSafeDumper as _Emitter
    from yaml import CSafeLoader as _Parser
except ImportError:  # where PyYAML was built without libyaml, which is ten times as fast and takes a nesting of 1,000
    from yaml import SafeDumper as _Emitter  # type: ignore[assignment]
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]

MOST_REPEATED_NODES: Final = 10_000
"""The most nodes that aliases may add: nine lines of them can stand for a billion."""
MOST_LEVELS: Final = 200
"""The deepest nesting: five times that of a pod, and what walks through a document needs a few calls a level."""

_MERGE: Final = "tag:yaml.org,2002:merge"
_SCALARS: Final = frozenset({INTEGER, FLOAT, BOOLEAN, NULL})
_MAPPING, _LIST = yaml.SafeLoader.DEFAULT_MAPPING_TAG, yaml.SafeLoader.DEFAULT_SEQUENCE_TAG
_TOO_DEEP: Final = "exceeded maximum nesting depth"
_BLANK: Final = " \t\r\n"


class _Loader(_Parser):
    """Composes nodes, with the tags that Kubernetes gives to plain scalars."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag of a node that has none."""
        if kind is yaml.ScalarNode:
            return _tag(value) if implicit[0] else TEXT
        return _MAPPING if kind is yaml.MappingNode else _LIST


class ManifestDumper(_Emitter):
    """Quotes each text that Kubernetes, or YAML 1.1, would take for something else."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag that a reader gives to a node without one."""
        tag = _tag(value) if kind is yaml.ScalarNode and implicit[0] else TEXT
        return tag if tag != TEXT else str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]

    def ignore_aliases(self, data: Any) -> bool:
        """Write what is there twice twice, as people and other tools expect it of a manifest."""
        return True


def parse_yaml(text: str, origin: str = "") -> list[Any]:
    """The content of each document, None for an empty one; raises `InvalidDocument` with line and column.

    JSON, which begins with a brace, is read as JSON: one document after the other.
    """
    text = text.removeprefix("\ufeff")
    try:
        if text.lstrip(_BLANK).startswith("{"):
            try:
                return _json_documents(text)
            except ValueError:  # YAML in one line; or YAML tells the place of what is wrong
                pass
        return [_content(node, aliases="&" in text) for node in yaml.compose_all(text, Loader=_Loader)]
    except RecursionError as error:
        raise InvalidDocument([Problem("", "cannot be read as YAML: it is nested too deeply", origin)]) from error
    except UnicodeEncodeError as error:
        raise InvalidDocument([Problem("", "cannot be read as YAML: it is no text in UTF-8", origin)]) from error
    except yaml.YAMLError as error:
        raise InvalidDocument([Problem("", _message(error), origin)]) from error


def write_yaml(documents: Iterable[object]) -> str:
    """Return the documents as one stream of YAML that Kubernetes reads as they are."""
    return str(yaml.dump_all(documents, Dumper=ManifestDumper, sort_keys=False, allow_unicode=True, width=120))


def _tag(text: str) -> str:
    return _MERGE if text == "<<" else resolved(text)[0]


def _message(error: yaml.YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return f"cannot be read as YAML: {' '.join(str(error).split())}"
    problem = getattr(error, "problem", None) or "unknown reason"
    if problem == _TOO_DEEP:
        problem = "it is nested too deeply"
    return f"line {mark.line + 1}, column {mark.column + 1}: cannot be read as YAML: {problem}"


def _json_documents(text: str) -> list[Any]:
    """Raises ValueError for what is no JSON, or has a field twice."""
    documents, place, decoder = [], 0, _JSON
    while place < len(text):
        document, place = decoder.raw_decode(text, place + _blanks(text, place))
        _check_depth(document)
        documents.append(document)
        place += _blanks(text, place)
    return documents


def _check_depth(value: Any, levels: int = MOST_LEVELS) -> None:
    if levels == 0:
        raise RecursionError
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            _check_depth(part, levels - 1)


def _blanks(text: str, place: int) -> int:
    end = place
    while text[end : end + 1] and text[end] in _BLANK:
        end += 1
    return end - place


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is there twice")
    return fields


def _json_number(text: str) -> int | float:
    number = float(text) if any(letter in text for letter in ".eE") else int(text)
    if not math.isfinite(number):
        raise ValueError("too large a number")
    return as_json(number)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_fields, parse_float=_json_number, parse_int=_json_number, parse_constant=_no_constant
)


def _content(document: yaml.Node | None, *, aliases: bool) -> Any:
    """Return what a document holds; without `aliases` none is looked for. Raises a marked YAML error."""
    if document is None:
        return None
    written: dict[int, int] = {}
    if aliases and _expanded(document, written) - len(written) > MOST_REPEATED_NODES:
        raise _refusal(document, f"its aliases stand for more than {MOST_REPEATED_NODES} fields; write less of them")
    return _value(document, set())


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count the nodes with each alias written out; `sizes` gets that of each node that is written."""
    known = sizes.get(id(node))
    if known is not None:
        return known
    sizes[id(node)] = 1  # an alias of what it is inside of does not end, and is refused where its value is asked for
    size = 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            size += _expanded(key, sizes) + _expanded(value, sizes)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            size += _expanded(item, sizes)
    sizes[id(node)] = size
    return size


def _value(node: yaml.Node, around: set[int]) -> Any:
    """Return what a node stands for; `around` are the nodes that it is in."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if id(node) in around:
        raise _refusal(node, "it holds an alias of itself")
    if len(around) == MOST_LEVELS:
        raise RecursionError
    around.add(id(node))
    value: Any
    if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
        value = _mapping(node, around)
    elif isinstance(node, yaml.SequenceNode) and node.tag == _LIST:
        value = [_value(item, around) for item in node.value]
    else:
        raise _unknown_tag(node)
    around.discard(id(node))
    return value


def _mapping(node: yaml.MappingNode, around: set[int]) -> dict[str, Any]:
    """Return the fields of a mapping, whose names are text and different.

    What is merged takes the place of what stands before it, as it does in Kubernetes.
    """
    fields: dict[str, Any] = {}
    seen: set[str] = set()
    for key, value in node.value:
        if key.tag == _MERGE:
            fields |= _merged(value, around)
            continue
        if key.tag != TEXT:
            shown = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise _refusal(key, f"the name of a field must be text, not {shown}; put it in quotes")
        if key.value in seen:
            raise _refusal(key, f'"{key.value}" is there twice')
        seen.add(key.value)
        fields[key.value] = _value(value, around)
    return fields


def _merged(node: yaml.Node, around: set[int]) -> dict[str, Any]:
    """Return the fields of the mapping or mappings of a merge key: of several, the first that has a field gives it."""
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    fields: dict[str, Any] = {}
    for part in reversed(parts):
        if not isinstance(part, yaml.MappingNode):
            raise _refusal(part, "only a mapping, or a list of mappings, can be merged")
        fields |= _value(part, around)
    return fields


def _scalar(node: yaml.ScalarNode) -> Scalar:
    tag, text = node.tag, node.value
    if tag in (TEXT, _MERGE):
        return str(text)
    if tag not in _SCALARS:
        raise _unknown_tag(node)
    found, value = resolved(text)
    if found != tag and (tag, found) != (FLOAT, INTEGER):
        raise _refusal(node, f'"{text}" is not of the type that its tag says')
    if isinstance(value, float) and not math.isfinite(value):
        raise _refusal(node, f'{text} is no number in JSON; put it in quotes ("...") where it is text')
    return value


def _unknown_tag(node: yaml.Node) -> yaml.MarkedYAMLError:
    return _refusal(node, f"could not determine a constructor for the tag '{node.tag}'")


def _refusal(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
