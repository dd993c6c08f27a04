"""Installs packages of this Debian or Ubuntu machine, without letting any service start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from images.tools.once import one_at_a_time
from playground.cluster import folders
from playground.cluster.commands import run, succeeds
from playground.cluster.errors import CommandFailed
from playground.cluster.machine import this_machine

POLICY = Path("/usr/sbin/policy-rc.d")
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive"}
_INSTALL_SECONDS = 900.0
_OPTIONS = ("-qq", "--yes", "-o", "DPkg::Lock::Timeout=300")


def install_if_possible(package: str) -> None:
    """Install a package; nothing where there is no Debian, or no root. Raises CommandFailed."""
    machine = this_machine()
    if machine.is_root and machine.has_debian_packages:
        install(package)


def install(*packages: str) -> None:
    """Install them with what they depend on, and nothing that is only recommended. Raises CommandFailed."""
    with _one_at_a_time(), nothing_started():
        try:
            _apt_get("install", "--no-install-recommends", *packages)
        except CommandFailed:
            # The lists may be old. A source that does not answer now is no matter unless the packages are only there.
            _update()
            _apt_get("install", "--no-install-recommends", *packages)


def update() -> bool:
    """Get the lists of packages anew; tell whether all of them were to be had."""
    with _one_at_a_time():
        return _update()


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


def _one_at_a_time() -> AbstractContextManager[None]:
    """Keep other processes of ours from the lists: `apt-get update` waits for nobody, whatever its options say."""
    return one_at_a_time(folders.cache(), "apt")


def _update() -> bool:
    return succeeds("apt-get", "-qq", "update", seconds=_INSTALL_SECONDS)


def _apt_get(*arguments: str) -> None:
    run("apt-get", *_OPTIONS, *arguments, environment=_ENVIRONMENT, seconds=_INSTALL_SECONDS)
