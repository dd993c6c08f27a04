"""Waiting for objects by watching them: no polling, no sleeping, and a failure that shows what was there instead."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playground.kube.kube_client import KubeClient, Object, Watch

Holds = Callable[[Object | None], bool]


class NotInTime(AssertionError):
    """A wait that ended in vain; the text shows the object as it was last."""


def await_object(client: KubeClient, path: str, holds: Holds, *, seconds: float = 30.0) -> Object | None:
    """The object (None: there is none) as soon as it is as wanted; raises NotInTime. The API server must stay up."""
    collection, _, name = path.rpartition("/")
    until = time.monotonic() + seconds
    listed = client.get(collection, fieldSelector=f"metadata.name={name}")
    of_kind = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
    found = next((of_kind | item for item in listed["items"]), None)
    if holds(found):
        return found
    version = listed["metadata"]["resourceVersion"]
    watch = client.watch(collection, version, seconds=int(seconds) + 1, fieldSelector=f"metadata.name={name}")
    with _closed_at(watch, until):
        for change in watch:
            found = None if change.type == "DELETED" else change.object
            if holds(found):
                return found
    raise NotInTime(f"{path} was not as wanted within {seconds:g} s; it is:\n{_shown(found)}")


def await_gone(client: KubeClient, path: str, *, seconds: float = 30.0) -> None:
    """Wait until there is no such object; raises NotInTime."""
    await_object(client, path, lambda found: found is None, seconds=seconds)


def await_condition(
    client: KubeClient, path: str, type: str, status: str = "True", *, reason: str = "", seconds: float = 30.0
) -> Object:
    """The object as soon as it has a condition with this status, and this reason if one is wanted."""

    def holds(found: Object | None) -> bool:
        condition = condition_of(found or {}, type)
        return condition.get("status") == status and reason in ("", condition.get("reason"))

    return await_object(client, path, holds, seconds=seconds) or {}


def await_generation(client: KubeClient, path: str, *, seconds: float = 30.0) -> Object:
    """The object as soon as its status is about its present spec."""

    def holds(found: Object | None) -> bool:
        if found is None:
            return False
        return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

    return await_object(client, path, holds, seconds=seconds) or {}


def condition_of(found: Object, type: str) -> Object:
    """A condition of an object's status; empty when it has none of that type."""
    conditions = found.get("status", {}).get("conditions", [])
    return next((dict(condition) for condition in conditions if condition["type"] == type), {})


@contextmanager
def _closed_at(watch: Watch, until: float) -> Iterator[None]:
    """Closes a watch at a point in time, unless the block is left before."""
    timer = threading.Timer(max(0.0, until - time.monotonic()), watch.close)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        watch.close()


def _shown(found: Object | None) -> str:
    if found is None:
        return "not there"
    return json.dumps({name: found[name] for name in ("metadata", "spec", "status") if name in found}, indent=1)
