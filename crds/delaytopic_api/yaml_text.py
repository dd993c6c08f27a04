"""YAML as Kubernetes reads it: plain data only, and a field that is written twice is an error."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from delaytopic_api.errors import InvalidDocument, Problem


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which by itself keeps the last of two equal keys and says nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping; raises a marked YAML error for a key that is there already."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f'"{key.value}" is there twice', problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, origin: str = "") -> list[Any]:
    """The content of each document, None for an empty one; raises `InvalidDocument` with line and column."""
    try:
        return list(yaml.load_all(text, Loader=_StrictLoader))
    except yaml.YAMLError as error:
        raise InvalidDocument([Problem("", _message(error), origin)]) from error


def _message(error: yaml.YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return f"is not YAML: {' '.join(str(error).split())}"
    problem = getattr(error, "problem", None) or "cannot be read"
    return f"line {mark.line + 1}, column {mark.column + 1}: is not YAML: {problem}"
