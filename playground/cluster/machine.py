"""Plain facts about this machine, and one line on what it lacks for a cluster."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

CAP_SYS_ADMIN = 21
CAP_SYS_RESOURCE = 24
_WITH_DEBIAN_PACKAGES = frozenset({"debian", "ubuntu"})


@dataclass(frozen=True, slots=True)
class Machine:
    """`families` are the ids of its distribution and of those that it is like, as in /etc/os-release."""

    system: str
    is_root: bool
    may_mount: bool
    may_raise_limits: bool
    families: frozenset[str]
    has_apt: bool

    @property
    def has_debian_packages(self) -> bool:
        """Tell whether programs can be installed from Debian's or Ubuntu's archive."""
        return self.has_apt and bool(self.families & _WITH_DEBIAN_PACKAGES)


def this_machine() -> Machine:
    """The facts of now."""
    status = _text("/proc/self/status")
    return Machine(
        system=os.uname().sysname,
        is_root=os.geteuid() == 0,
        may_mount=has_capability(status, CAP_SYS_ADMIN),
        may_raise_limits=has_capability(status, CAP_SYS_RESOURCE),
        families=families(_text("/etc/os-release")),
        has_apt=shutil.which("apt-get") is not None,
    )


def lacks_for_engine(machine: Machine) -> str | None:
    """Return why no Docker engine can be started here, as one line; None when one can."""
    nobody = "no Docker engine answers (docker version), and"
    if machine.system != "Linux":
        return f"{nobody} on {machine.system} none can be started from here: start Docker Desktop, or set DOCKER_HOST"
    if not machine.is_root:
        return f"{nobody} only root can start one: start Docker, set DOCKER_HOST, or run this as root"
    if not machine.may_mount:
        return f"{nobody} root may not mount here: start Docker outside, set DOCKER_HOST, or run this as root of a VM"
    if not machine.has_debian_packages:
        return f"{nobody} this is neither Debian nor Ubuntu, where one would be installed: install Docker and start it"
    return None


def lacks_for_node_image(machine: Machine, published: str) -> str | None:
    """Return why a node image can't be built here, as one line; None when it can."""
    missing = f"{published} is not on the Docker engine and can't be pulled, and"
    remedy = f"bring it with docker save and docker load, or name another in {NODE_IMAGE_VARIABLE}"
    if not machine.is_root:
        return f"{missing} only root can build one: {remedy}"
    if not machine.has_debian_packages:
        return f"{missing} one is built from packages only on Debian and Ubuntu: {remedy}"
    return None


NODE_IMAGE_VARIABLE = "E2E_NODE_IMAGE"


def has_capability(status: str, number: int) -> bool:
    """Tell whether a process with this /proc/<pid>/status has the capability of that number, as in capability.h."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> number & 1)
    return False


def families(os_release: str) -> frozenset[str]:
    """ID and ID_LIKE of an /etc/os-release."""
    named = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    words = f"{named.get('ID', '')} {named.get('ID_LIKE', '')}".replace('"', " ").replace("'", " ")
    return frozenset(words.lower().split())


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
