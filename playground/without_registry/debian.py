"""Installs packages of this Debian or Ubuntu machine, without letting any service start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playground.cluster.commands import run, succeeds
from playground.cluster.errors import CommandFailed

POLICY = Path("/usr/sbin/policy-rc.d")
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive"}
_INSTALL_SECONDS = 900.0


def install(*packages: str) -> None:
    """Install them with what they depend on, and nothing that is only recommended. Raises CommandFailed."""
    with nothing_started():
        try:
            _apt_get("install", "--no-install-recommends", *packages)
        except CommandFailed:
            # The lists may be old. A source that does not answer now is no matter unless the packages are only there.
            succeeds("apt-get", "-qq", "update", seconds=_INSTALL_SECONDS)
            _apt_get("install", "--no-install-recommends", *packages)


@contextmanager
def nothing_started(policy: Path = POLICY) -> Iterator[None]:
    """Keep what is installed in this block from starting services; a policy that is already there stays as it is."""
    try:
        with policy.open("x", encoding="utf-8") as script:
            script.write("#!/bin/sh\nexit 101\n")
            os.fchmod(script.fileno(), 0o755)
    except FileExistsError:
        yield
        return
    try:
        yield
    finally:
        policy.unlink()


def _apt_get(*arguments: str) -> None:
    run("apt-get", "-qq", "--yes", *arguments, environment=_ENVIRONMENT, seconds=_INSTALL_SECONDS)
