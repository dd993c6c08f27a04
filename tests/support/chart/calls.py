"""The operator's calls of the API server, read from its source: no call, no right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.cluster.access import Access

import delaytopic_operator
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.runtime import watched

_PACKAGE: Final = Path(str(delaytopic_operator.__file__)).parent
_CONSTANTS: Final = {name: value for name, value in vars(kinds).items() if isinstance(value, Kind)}
_BY_NAME: Final = {kind.name: kind for kind in kinds.ALL}
_VERBS: Final = {"get": "get", "list": "list", "pages": "list", "patch": "patch", "delete": "delete"}
"""Of the methods of KubeApi whose first argument is a kind."""
_WRITTEN_OTHERWISE: Final = (
    *(kinds.EVENT, kinds.LEASE, kinds.DELAY_TOPIC, kinds.DELAY_CLASS),
    *(kinds.POD, kinds.SECRET, kinds.RECURRING_RECORD),
)
"""Documents of these kinds are not applied like relays: see `_special`. A pod is a template in a ConfigMap."""


def needed_rights() -> set[Access]:
    """Everything that the code may ask for, whatever the namespace."""
    return {*_watching(), *_named_calls(), *_documents(), *_special()}


def access(verb: str, kind: Kind, subresource: str = "") -> Access:
    """The right to do that."""
    group = kind.api_version.rpartition("/")[0]
    return Access(verb, group, "/".join(filter(None, (kind.plural, subresource))))


def _watching() -> Iterator[Access]:
    for kind in watched.ALL:
        yield access("list", kind)
        yield access("watch", kind)


def _named_calls() -> Iterator[Access]:
    for call in _calls():
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        kind = _kind_of(call.args[0]) if call.args and "kube" in ast.unparse(call.func) else None
        if kind is not None and method in _VERBS:
            yield access(_VERBS[method], kind)
        if kind is not None and method == "scale":
            yield access("patch", kind, "scale")


def _documents() -> Iterator[Access]:
    """Whatever is built is applied, which makes it where it is missing, and removed again."""
    for node in _nodes(ast.Dict):
        entries = {_text(key): value for key, value in zip(node.keys, node.values, strict=True)}
        kind = _kind_in(entries.get("kind"))
        if kind is not None and {"apiVersion", "metadata"} <= entries.keys() and kind not in _WRITTEN_OTHERWISE:
            yield from (access(verb, kind) for verb in ("create", "patch", "delete"))


def _special() -> Iterator[Access]:
    methods = {call.func.attr for call in _calls() if isinstance(call.func, ast.Attribute)}
    yield from (access(verb, kinds.LEASE) for verb in ("create", "update"))
    yield from (access("create", kind) for kind in (kinds.EVENT, kinds.SECRET))
    for kind in (kinds.DELAY_TOPIC, kinds.DELAY_CLASS, kinds.RECURRING_RECORD):
        yield access("patch", kind)
        if "apply_status" in methods:
            yield access("patch", kind, "status")


def _calls() -> Iterator[ast.Call]:
    return _nodes(ast.Call)


def _nodes(kind: type[Any]) -> Iterator[Any]:
    return (node for node in _all_nodes() if isinstance(node, kind))


@cache
def _all_nodes() -> tuple[ast.AST, ...]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(_PACKAGE.rglob("*.py"))]
    return tuple(node for tree in trees for node in ast.walk(tree))


def _kind_of(argument: ast.expr) -> Kind | None:
    name = argument.attr if isinstance(argument, ast.Attribute) else getattr(argument, "id", "")
    return _CONSTANTS.get(name)


def _kind_in(value: ast.expr | None) -> Kind | None:
    """`"Deployment"` or `DEPLOYMENT.name`."""
    if isinstance(value, ast.Attribute) and value.attr == "name":
        return _kind_of(value.value)
    return _BY_NAME.get(_text(value))


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
