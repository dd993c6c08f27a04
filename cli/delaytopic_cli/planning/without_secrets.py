"""Comparing relays without reading Secrets, whose content is taken to be as it should be. Pure.

Relays start anew when the content of a Secret changes, so a digest of it is in their pods' config hash. A plan reads no
Secrets: it puts the hash that it would get from the live configuration in the place of the one that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import load_relay_config
from delaytopic_operator.resources.hash import APPLIED_HASH, CONFIG_HASH, config_hash, stamped

Document = dict[str, Any]
CONFIG_KEY = "relay.yaml"


def as_if_read(children: Sequence[Document], wanted: Iterable[Document], secrets_version: str) -> list[Document]:
    """The live children, with hashes as `wanted` would have them if only Secrets were other than is known here."""
    desired = next((each for each in wanted if each["kind"] == "Deployment"), None)
    fresh = _live_hash(children, secrets_version)
    if desired is None or fresh is None:
        return list(children)
    return [_rebased(each, desired, fresh) if each["kind"] == "Deployment" else each for each in children]


def _live_hash(children: Sequence[Document], secrets_version: str) -> str | None:
    """Of the configuration that is in the cluster."""
    texts = [(each.get("data") or {}).get(CONFIG_KEY) for each in children if each["kind"] == "ConfigMap"]
    try:
        return next((config_hash(load_relay_config(text), secrets_version) for text in texts if text), None)
    except ApiError:
        return None


def _rebased(live: Document, desired: Document, fresh: str) -> Document:
    """Only if the pods have the hash of the live configuration can another one be due to Secrets."""
    there = _pod_hash(live)
    if there is None:
        return live
    same_but_for_secrets = _restamped(desired, there) if _pod_hash(desired) == fresh else None
    applied = (live["metadata"].get("annotations") or {}).get(APPLIED_HASH)
    rebased = _with_pod_hash(live, fresh)
    if same_but_for_secrets is not None and _applied_hash(same_but_for_secrets) == applied:
        return _with_annotation(rebased, APPLIED_HASH, _applied_hash(desired))
    return rebased


def _restamped(document: Document, pod_hash: str) -> Document:
    changed = _with_pod_hash(document, pod_hash)
    metadata = changed["metadata"]
    annotations = {name: value for name, value in metadata["annotations"].items() if name != APPLIED_HASH}
    bare = {name: value for name, value in metadata.items() if name != "annotations"}
    # A document without other annotations had none when it was stamped.
    return stamped({**changed, "metadata": {**bare, **({"annotations": annotations} if annotations else {})}})


def _pod_hash(document: Mapping[str, Any]) -> str | None:
    found: Mapping[str, str] = document["spec"]["template"]["metadata"].get("annotations") or {}
    return found.get(CONFIG_HASH)


def _applied_hash(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["annotations"][APPLIED_HASH])


def _with_pod_hash(document: Document, value: str) -> Document:
    spec, template = document["spec"], document["spec"]["template"]
    return {**document, "spec": {**spec, "template": _with_annotation(template, CONFIG_HASH, value)}}


def _with_annotation(part: Document, name: str, value: str) -> Document:
    metadata = part["metadata"]
    return {**part, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), name: value}}}
