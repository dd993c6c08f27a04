"""The ConfigMaps of relays: one for each configuration, never changed, and removed once nobody starts from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources.pod import CONFIG_VOLUME

MOST_UNSEEN: Final = 10
"""While a rollout is on its way, a ReplicaSet may still ask for pods that nobody sees yet: so many of the newest
configurations stay for it."""

Document = Mapping[str, Any]
Place = tuple[str, str]
"""Namespace and name of a ConfigMap."""


def is_relay_config(document: Document) -> bool:
    """Tell whether it is a configuration of relays; audits have theirs in ConfigMaps that change."""
    return document["kind"] == "ConfigMap" and bool(document.get("immutable"))


def is_spoilt(differences: Iterable[str]) -> bool:
    """Tell whether an immutable ConfigMap holds something else than it should: it has to be made anew."""
    return any(path.partition(".")[0].partition("[")[0] == "data" for path in differences)


def config_place(deployment: Document) -> Place | None:
    """Return the ConfigMap that pods of a Deployment start from."""
    return _place(deployment, deployment["spec"].get("template") or {})


def configs_in_use(seen: Observation) -> set[Place]:
    """Return the ConfigMaps that relays run with, or may still be started from."""
    deployment, living = seen.fleet.deployment, seen.fleet.living
    used = {_place(pod, pod) for pod in seen.fleet.pods if pod["metadata"]["name"] in living}
    if deployment is not None:
        used.add(config_place(deployment))
        if seen.fleet.rolling is not None:
            used.update(_newest(seen))
    return {place for place in used if place is not None}


def _newest(seen: Observation) -> list[Place]:
    found = [each["metadata"] for each in seen.route.objects if is_relay_config(each)]
    found.sort(key=lambda metadata: str(metadata.get("creationTimestamp", "")), reverse=True)
    return [(metadata.get("namespace", ""), metadata["name"]) for metadata in found[:MOST_UNSEEN]]


def _place(owner: Document, pod: Document) -> Place | None:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    name = next((each.get("configMap", {}).get("name") for each in volumes if each["name"] == CONFIG_VOLUME), None)
    return (owner["metadata"].get("namespace", ""), str(name)) if name is not None else None
