"""The node's image follows from its inputs, and what is in it from what kubeadm and containerd ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.cluster import folders, go_programs
from tests.e2e.without_registry.archive import Image
from tests.e2e.without_registry.node_image import own_image
from tests.e2e.without_registry.node_root import bundle_defaults, sandbox_image
from tests.e2e.without_registry.system_images import system_images


def test_equal_inputs_have_one_name() -> None:
    assert own_image() == own_image()


@pytest.mark.parametrize("program", ["node", "coredns"])
def test_another_version_of_a_program_gives_another_image(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = own_image()
    for name in ("node", "coredns"):
        (tmp_path / name).mkdir()
        for file in ("main.go", "go.mod", "go.sum"):
            text = (Path(go_programs.__file__).with_name("programs") / name / file).read_text()
            (tmp_path / name / file).write_text(text)
    monkeypatch.setattr(go_programs, "_SOURCES", tmp_path)
    assert own_image() == before

    with (tmp_path / program / "go.mod").open("a") as module:
        module.write("// another\n")

    assert own_image() != before


def test_another_version_of_kind_gives_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    before = own_image()

    monkeypatch.setattr("tests.e2e.without_registry.node_image.KIND_VERSION", "9.9.9")

    assert own_image() != before


def test_everything_is_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert {folders.engine().parent, folders.node_images().parent, folders.run_state("a").parents[1]} == {
        tmp_path / "delaytopic" / "e2e"
    }


def test_each_name_that_is_asked_for_becomes_an_image_that_starts_the_right_program() -> None:
    names = ["registry.k8s.io/pause:3.10", "registry.k8s.io/coredns/coredns:v1.12.1", "registry.k8s.io/etcd:3.6.5-0"]

    assert system_images(names) == [
        Image(names=("registry.k8s.io/coredns/coredns:v1.12.1",), entrypoint=("/coredns",)),
        Image(names=("registry.k8s.io/etcd:3.6.5-0",)),
        Image(names=("registry.k8s.io/pause:3.10",), entrypoint=("/bin/busybox", "sleep", "2147483647")),
    ]


def test_the_image_of_a_pods_sandbox_is_read_from_the_settings_of_containerd() -> None:
    settings = '[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "registry.k8s.io/pause:3.10"\n'

    assert sandbox_image(settings) == "registry.k8s.io/pause:3.10"


def test_pods_start_with_the_hook_of_kind_and_without_limits() -> None:
    specification = {"root": {"path": "rootfs"}, "process": {"cwd": "/", "rlimits": [{"type": "RLIMIT_NOFILE"}]}}

    assert bundle_defaults(specification) == {
        "root": {"path": "rootfs"},
        "process": {"cwd": "/"},
        "hooks": {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]},
    }
