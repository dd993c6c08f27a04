"""The images of the engine that a node lacks. Pure.

Loading one takes as long when the node has it as when it has not.


`kind load` would look by itself with crictl, which our own node image does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

_IDENTITY = "sha256:"


def identities(listing: str) -> dict[str, frozenset[str]]:
    """Return from what `ctr images list` prints the ids of each image by its name, of which an engine uses one.

    containerd lists each image by its name and by the digest of its configuration, both with the digest of its
    manifest. The first is the id in an engine with Docker's own store, the second in one with containerd's.
    """
    rows = [line.split()[:3] for line in listing.splitlines()[1:] if line.strip()]
    by_manifest: dict[str, set[str]] = {}
    for name, _, manifest in rows:
        by_manifest.setdefault(manifest, {manifest}).update([name] if name.startswith(_IDENTITY) else [])
    return {name: frozenset(by_manifest[manifest]) for name, _, manifest in rows if not name.startswith(_IDENTITY)}


def lacking(wanted: Mapping[str, str], there: Mapping[str, frozenset[str]]) -> list[str]:
    """The references, of those with their ids in the engine, that the node does not have, or has with another id."""
    return [reference for reference, identity in wanted.items() if identity not in there.get(full(reference), ())]


def full(reference: str) -> str:
    """Return the name by which containerd calls an image: with the registry, which is Docker's where none is named."""
    first, slash, _ = reference.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return reference
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"
