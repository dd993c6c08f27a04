"""YAML as Kubernetes reads it: plain data only, and a field that is written twice is an error."""

from __future__ import annotations

from typing import Any, Final

import yaml

from delaytopic_api.errors import InvalidDocument, Problem

MOST_REPEATED_NODES: Final = 10_000
"""The most nodes that aliases may add: nine lines of them can stand for a billion."""

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which by itself keeps the last of two equal keys, and takes `on` for a boolean."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping as it is written, before merge keys are resolved; raises a marked YAML error."""
        node = super().compose_mapping_node(anchor)
        _check_names(node)
        return node

    def compose_document(self) -> yaml.Node | None:
        """A document whose aliases stand for little; raises a marked YAML error."""
        node = super().compose_document()
        if node is not None:
            written: dict[int, int] = {}
            if _expanded(node, written) - len(written) > MOST_REPEATED_NODES:
                raise _refusal(
                    node, f"its aliases stand for more than {MOST_REPEATED_NODES} fields; write less of them"
                )
        return node


# JSON has no times: what looks like one is text for Kubernetes.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str, origin: str = "") -> list[Any]:
    """The content of each document, None for an empty one; raises `InvalidDocument` with line and column."""
    try:
        return list(yaml.load_all(text, Loader=_StrictLoader))
    except RecursionError as error:
        raise InvalidDocument([Problem("", "cannot be read as YAML: it is nested too deeply", origin)]) from error
    except yaml.YAMLError as error:
        raise InvalidDocument([Problem("", _message(error), origin)]) from error


def _message(error: yaml.YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return f"cannot be read as YAML: {' '.join(str(error).split())}"
    problem = getattr(error, "problem", None) or "unknown reason"
    return f"line {mark.line + 1}, column {mark.column + 1}: cannot be read as YAML: {problem}"


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count the nodes with each alias written out; `sizes` gets that of each node that is written."""
    known = sizes.get(id(node))
    if known is not None:
        return known
    sizes[id(node)] = 1  # an alias of what it is inside of does not end; the loader refuses it where it matters
    parts = node.value if isinstance(node, yaml.CollectionNode) else ()
    below = (each for part in parts for each in (part if isinstance(part, tuple) else (part,)))
    sizes[id(node)] = 1 + sum(_expanded(each, sizes) for each in below)
    return sizes[id(node)]


def _check_names(node: yaml.MappingNode) -> None:
    """The names of a mapping's fields are text and different."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == _MERGE:
            continue
        if key.tag != _TEXT:
            shown = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise _refusal(key, f"the name of a field must be text, not {shown}; put it in quotes")
        if key.value in seen:
            raise _refusal(key, f'"{key.value}" is there twice')
        seen.add(key.value)


def _refusal(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
