"""Edge: the docker command."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from images.tools.errors import DockerError

_TAIL = 25


class Docker:
    """The engine that DOCKER_HOST or docker's own context names. Each method raises DockerError."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """`environment` is added to this process's."""
        self._environment = {**os.environ, **(environment or {})}

    def build(self, context: Path, dockerfile: Path, tag: str, options: Mapping[str, Mapping[str, str]]) -> None:
        """Build and tag an image; `options` are `build-arg` and `label`, each by name."""
        pairs = [f"--{option}={name}={value}" for option, values in options.items() for name, value in values.items()]
        self._run("build", "--quiet", "--force-rm", f"--tag={tag}", f"--file={dockerfile}", *pairs, str(context))

    def size(self, reference: str) -> int | None:
        """Bytes, unpacked; None when it is not here."""
        found = self._inspect(reference, "{{.Size}}")
        return None if found is None else int(found)

    def layers(self, reference: str) -> list[str]:
        """Digests, the lowest first; empty when it is not here."""
        found = self._inspect(reference, "{{json .RootFS.Layers}}")
        return [] if found is None else list(json.loads(found))

    def digest(self, reference: str) -> str | None:
        """Return the digest that a registry has it by; None for one that was only built here."""
        found = self._inspect(reference, "{{json .RepoDigests}}")
        known = json.loads(found) if found else None
        return str(known[0]).rpartition("@")[2] if known else None

    def pull(self, reference: str) -> None:
        """Fetch an image from its registry, unless it is here."""
        if self.size(reference) is None:
            self._run("pull", "--quiet", reference)

    def save(self, reference: str, file: Path) -> None:
        """Write an image to an archive, which `docker load` and `skopeo` take."""
        self._run("save", f"--output={file}", reference)

    def push(self, reference: str, registry: str) -> str:
        """Push an image to a registry; return its name there, by its digest."""
        there = f"{registry.rstrip('/')}/{reference}"
        self._run("tag", reference, there)
        self._run("push", "--quiet", there)
        known = json.loads(self._inspect(there, "{{json .RepoDigests}}") or "null")
        names = [str(name) for name in known or () if name.startswith(f"{there.rpartition(':')[0]}@")]
        if not names:
            raise DockerError(f"{there} was pushed, and the engine does not know its digest")
        return names[0]

    def read_file(self, reference: str, path: str) -> bytes:
        """A file of an image; nothing of it is run."""
        container = self._run("create", reference).decode().strip()
        try:
            archive = self._run("cp", f"{container}:{path}", "-")
        finally:
            self._run("rm", container)
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            member = members.extractfile(members.next() or path)
            return member.read() if member else b""

    def _inspect(self, reference: str, template: str) -> str | None:
        done = self._start("image", "inspect", "--format", template, reference)
        if done.returncode == 0:
            return done.stdout.decode().strip()
        if b"No such image" in done.stderr:
            return None
        raise DockerError(f"docker image inspect {reference} failed:\n{_end(done.stderr)}")

    def _run(self, *arguments: str) -> bytes:
        done = self._start(*arguments)
        if done.returncode != 0:
            raise DockerError(f"docker {arguments[0]} failed:\n{_end(done.stdout + done.stderr)}")
        return done.stdout

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["docker", *arguments]
        try:
            return subprocess.run(
                command, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        except FileNotFoundError as error:
            raise DockerError("there is no docker command on the PATH: install Docker") from error


def _end(output: bytes) -> str:
    return "\n".join(output.decode(errors="replace").strip().splitlines()[-_TAIL:])
