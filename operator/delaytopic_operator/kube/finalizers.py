"""Finalizers, edited in the live list: whoever wrote one, and whatever else is in the list stays.

By server-side apply a field manager gives up its own entries alone: a finalizer that a manifest or a backup has as well
would stay, and the object and its namespace would hang.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delaytopic_operator.errors import Conflict, ObjectRejected
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.kinds import Kind


def finalizer_patch(metadata: Mapping[str, Any], finalizer: str, *, held: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that adds a finalizer or removes it, of this very object and list; empty if it is so."""
    live = metadata.get("finalizers") or []
    if (finalizer in live) == held:
        return []
    wanted = [*live, finalizer] if held else [each for each in live if each != finalizer]
    path = "/metadata/finalizers"
    return [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": path, "value": live or None},
        {"op": "add", "path": path, "value": wanted} if wanted else {"op": "remove", "path": path},
    ]


def set_finalizer(
    kube: KubeApi,
    kind: Kind,
    namespace: str | None,
    metadata: Mapping[str, Any],
    finalizer: str,
    manager: str,
    *,
    held: bool,
) -> None:
    """Add a finalizer to an object or remove it; `metadata` is as it was seen last.

    Raises `Conflict` if it is another object or list by now: the next look has the newer one.
    """
    patch = finalizer_patch(metadata, finalizer, held=held)
    if not patch:
        return
    try:
        kube.patch(kind, namespace, metadata["name"], patch, manager)
    except ObjectRejected as error:
        # So the API server says that a test failed.
        raise Conflict(str(error)) from error
