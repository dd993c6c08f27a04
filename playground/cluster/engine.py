"""The Docker engine that clusters run in: one that is there already, or a private one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from images.tools.go_builds import Report, print_progress
from images.tools.once import one_at_a_time
from playground.cluster import folders
from playground.cluster.commands import run, succeeds
from playground.cluster.errors import CommandFailed
from playground.cluster.machine import this_machine
from playground.without_registry.private_engine import PrivateEngine

BUILD_SECONDS = 1800.0
PULL_SECONDS = 900.0


class DockerEngine:
    """Builds and loads images with the docker command. Raises CommandFailed with what docker said."""

    def __init__(self, host: str, *, is_private: bool) -> None:
        """`host` is the value of DOCKER_HOST; private is one that was started from here."""
        self.host = host
        self.is_private = is_private

    @property
    def environment(self) -> dict[str, str]:
        """Return what other programs need in theirs to use this engine."""
        # Debian's engine comes without buildx: what docker calls the legacy builder is the one that is there.
        return {"DOCKER_HOST": self.host, **({"DOCKER_BUILDKIT": "0"} if self.is_private else {})}

    def build(
        self, context: Path, dockerfile: Path, tag: str, build_args: Mapping[str, str] | None = None, target: str = ""
    ) -> str:
        """Build an image; returns its tag."""
        arguments = [f"--build-arg={name}={value}" for name, value in (build_args or {}).items()]
        stage = [f"--target={target}"] if target else []
        self("build", f"--tag={tag}", f"--file={dockerfile}", *arguments, *stage, str(context), seconds=BUILD_SECONDS)
        self._remember(tag)
        return tag

    def load_archive(self, path: Path) -> tuple[str, ...]:
        """Load an archive as `docker save` writes it; returns the names of the images in it."""
        names = loaded_names(self("load", f"--input={path}"))
        self._remember(*names)
        return names

    def has_image(self, reference: str) -> bool:
        """Tell whether the image is here, without asking a registry."""
        return succeeds("docker", "image", "inspect", reference, environment=self.environment)

    def image_id(self, reference: str) -> str:
        """Return what tells an image from another one of the same name. Raises CommandFailed when it is not here."""
        return self("image", "inspect", "--format={{.Id}}", reference).strip()

    def pull(self, reference: str) -> bool:
        """Get an image from its registry; False when it can't be had."""
        try:
            self("pull", "--quiet", reference, seconds=PULL_SECONDS)
        except CommandFailed:
            return False
        return True

    def remove_image(self, reference: str) -> None:
        """Remove an image if there is one; raises CommandFailed while a container uses it."""
        if self.has_image(reference):
            self("image", "rm", "--force", reference)

    def remove_own_images(self) -> None:
        """Every image that was built or loaded from here since the last time, on an engine that stays."""
        for reference in sorted(_remembered()):
            self.remove_image(reference)
        _own_images().unlink(missing_ok=True)

    def _remember(self, *references: str) -> None:
        if self.is_private:  # its images go with it
            return
        _own_images().parent.mkdir(parents=True, exist_ok=True)
        with _own_images().open("a", encoding="utf-8") as names:
            names.writelines(f"{reference}\n" for reference in references)

    def __call__(self, *arguments: str, seconds: float = 300.0) -> str:
        """Any other docker command; returns what it printed."""
        return run("docker", *arguments, environment=self.environment, seconds=seconds)


def find_engine() -> DockerEngine | None:
    """The one that DOCKER_HOST or docker's own context names, else the private one; None when neither answers."""
    if succeeds("docker", "version", "--format", "{{.Server.Version}}"):
        endpoint = "{{.Endpoints.docker.Host}}"
        host = os.environ.get("DOCKER_HOST") or run("docker", "context", "inspect", "--format", endpoint).strip()
        return DockerEngine(host, is_private=host == PrivateEngine().host)
    private = PrivateEngine()
    return DockerEngine(private.host, is_private=True) if private.answers() else None


def start_engine(report: Report = print_progress) -> DockerEngine:
    """The one that is found, or else a private one, started now. Raises MachineLacks, CommandFailed and NotReady."""
    with one_at_a_time(folders.cache(), "engine"):
        found = find_engine()
        if found:
            return found
        private = PrivateEngine()
        private.start(this_machine(), report)
        return DockerEngine(private.host, is_private=True)


def loaded_names(output: str) -> tuple[str, ...]:
    """The names in what `docker load` prints; images without a name are not among them."""
    return tuple(
        line.removeprefix("Loaded image: ") for line in output.splitlines() if line.startswith("Loaded image: ")
    )


def _own_images() -> Path:
    return folders.cache() / "images.txt"


def _remembered() -> set[str]:
    return set(_own_images().read_text(encoding="utf-8").split()) if _own_images().exists() else set()
