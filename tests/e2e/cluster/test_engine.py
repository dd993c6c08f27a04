"""Tests of what is put on the host for an engine, and what is read from its output."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.e2e.cluster.engine import DockerEngine, loaded_names
from tests.e2e.without_registry.debian import nothing_started


def test_the_names_of_loaded_images_are_read_from_what_docker_prints() -> None:
    output = "Loaded image: pause:3.10\nLoaded image: shop/relay:1\nLoaded image ID: sha256:0123\n"

    assert loaded_names(output) == ("pause:3.10", "shop/relay:1")


def test_other_programs_find_the_engine_by_its_environment() -> None:
    assert DockerEngine("unix:///a", is_private=False).environment == {"DOCKER_HOST": "unix:///a"}
    assert DockerEngine("unix:///a", is_private=True).environment == {
        "DOCKER_HOST": "unix:///a",
        "DOCKER_BUILDKIT": "0",
    }


def test_while_packages_are_installed_a_policy_forbids_services_to_start(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"

    with nothing_started(policy):
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
        assert stat.S_IMODE(policy.stat().st_mode) == 0o755

    assert not policy.exists()


def test_a_policy_of_the_machine_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")

    with nothing_started(policy):
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"

    assert policy.read_text() == "#!/bin/sh\nexit 0\n"
