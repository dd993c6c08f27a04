"""Tests that what a machine lacks for a cluster is said in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playground.cluster.machine import (
    CAP_SYS_RESOURCE,
    Machine,
    families,
    has_capability,
    lacks_for_engine,
    lacks_for_node_image,
)

DEBIAN_ROOT = Machine(
    system="Linux",
    is_root=True,
    may_mount=True,
    may_raise_limits=True,
    families=frozenset({"debian"}),
    has_apt=True,
)
PUBLISHED = "kindest/node:v1.34.4"


def test_root_on_debian_lacks_nothing() -> None:
    assert lacks_for_engine(DEBIAN_ROOT) is None
    assert lacks_for_node_image(DEBIAN_ROOT, PUBLISHED) is None


@pytest.mark.parametrize(
    ("machine", "remedy"),
    [
        (replace(DEBIAN_ROOT, system="Darwin"), "start Docker Desktop, or set DOCKER_HOST"),
        (replace(DEBIAN_ROOT, is_root=False), "start Docker, set DOCKER_HOST, or run this as root"),
        (replace(DEBIAN_ROOT, may_mount=False), "start Docker outside, set DOCKER_HOST, or run this as root of a VM"),
        (replace(DEBIAN_ROOT, families=frozenset({"fedora"})), "install Docker and start it"),
        (replace(DEBIAN_ROOT, has_apt=False), "install Docker and start it"),
    ],
)
def test_who_can_start_no_engine_is_told_in_one_line_what_to_do(machine: Machine, remedy: str) -> None:
    lacking = lacks_for_engine(machine) or ""

    assert lacking.startswith("no Docker engine answers")
    assert lacking.endswith(f": {remedy}")
    assert "\n" not in lacking


@pytest.mark.parametrize(
    "machine", [replace(DEBIAN_ROOT, is_root=False), replace(DEBIAN_ROOT, families=frozenset({"arch"}))]
)
def test_who_can_build_no_node_image_is_told_how_to_bring_one(machine: Machine) -> None:
    lacking = lacks_for_node_image(machine, PUBLISHED) or ""

    assert lacking.startswith(f"{PUBLISHED} is not on the Docker engine and can't be pulled")
    assert lacking.endswith("bring it with docker save and docker load, or name another in E2E_NODE_IMAGE")


def test_a_distribution_is_known_by_its_own_name_and_by_what_it_is_like() -> None:
    os_release = 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n'

    assert families(os_release) == {"linuxmint", "ubuntu", "debian"}


@pytest.mark.parametrize(
    ("effective", "expected"), [("000001ffffffffff", True), ("000001fffeffffff", False), ("0000000000000000", False)]
)
def test_a_right_is_one_bit_of_the_effective_capabilities(effective: str, expected: bool) -> None:
    assert has_capability(f"Name:\tcat\nCapInh:\t0\nCapEff:\t{effective}\n", CAP_SYS_RESOURCE) is expected
