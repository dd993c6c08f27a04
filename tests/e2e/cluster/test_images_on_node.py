"""Only an image that a node lacks, or has in another version, is loaded into it."""

from __future__ import annotations

import pytest
from tests.e2e.cluster.images_on_node import full, identities, lacking

KIND = "application/vnd.docker.distribution.manifest.v2+json"
# What `ctr images list` prints: Kafka by its name and by the digest of its configuration, Redis by its name alone.
LISTING = f"""\
REF                                  TYPE   DIGEST            SIZE      PLATFORMS   LABELS
docker.io/delaytopic-e2e/kafka:4.3   {KIND} sha256:manifest-1 421.0 MiB linux/amd64 io.cri-containerd.image=managed
docker.io/delaytopic-e2e/redis:7.0   {KIND} sha256:manifest-2 30.0 MiB  linux/amd64 io.cri-containerd.image=managed
sha256:configuration-1               {KIND} sha256:manifest-1 421.0 MiB linux/amd64 io.cri-containerd.image=managed
"""
KAFKA, REDIS = "delaytopic-e2e/kafka:4.3", "delaytopic-e2e/redis:7.0"


def test_an_image_on_a_node_has_the_ids_by_which_engines_of_either_kind_know_it() -> None:
    assert identities(LISTING) == {
        "docker.io/delaytopic-e2e/kafka:4.3": {"sha256:manifest-1", "sha256:configuration-1"},
        "docker.io/delaytopic-e2e/redis:7.0": {"sha256:manifest-2"},
    }


def test_a_node_without_images_lacks_all() -> None:
    assert lacking({KAFKA: "sha256:configuration-1"}, identities(LISTING.splitlines()[0])) == [KAFKA]


@pytest.mark.parametrize(
    ("identity", "expected"),
    [("sha256:configuration-1", []), ("sha256:manifest-1", []), ("sha256:configuration-2", [KAFKA])],
)
def test_an_image_that_was_made_anew_is_lacking_although_its_name_is_there(identity: str, expected: list[str]) -> None:
    assert lacking({KAFKA: identity}, identities(LISTING)) == expected


def test_those_that_are_lacking_keep_their_order() -> None:
    wanted = {"shop/relay:1": "sha256:a", REDIS: "sha256:manifest-2", "shop/audit:1": "sha256:b"}

    assert lacking(wanted, identities(LISTING)) == ["shop/relay:1", "shop/audit:1"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("redis:7", "docker.io/library/redis:7"),
        ("delaytopic/relay:e2e", "docker.io/delaytopic/relay:e2e"),
        ("registry.example/delays/relay:1", "registry.example/delays/relay:1"),
        ("localhost/relay:1", "localhost/relay:1"),
        ("mirror:5000/relay:1", "mirror:5000/relay:1"),
    ],
)
def test_containerd_calls_an_image_by_its_registry_too(reference: str, expected: str) -> None:
    assert full(reference) == expected
