"""The changes of a private engine to its host beside its own folder: remembered before, undone afterwards."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from playground.cluster.commands import run
from playground.without_registry.firewall import undoing

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_LINKS = Path("/sys/class/net")
_CGROUPS = Path("/sys/fs/cgroup")
# What dockerd and containerd make outside the folders that they are given.
_FOLDERS = (Path("/etc/docker"), Path("/run/docker"), Path("/run/containerd"))
_FILTERS = ("iptables", "ip6tables")


@dataclass(frozen=True, slots=True)
class HostState:
    """Network devices, whether packets are forwarded, the packet filters' rules, and which folders were there."""

    links: list[str]
    forwarding: str
    filters: dict[str, str]
    folders: list[str]

    @classmethod
    def now(cls) -> HostState:
        """Return the state at this moment."""
        return cls(
            links=sorted(link.name for link in _LINKS.iterdir()),
            forwarding=FORWARDING.read_text().strip(),
            filters={name: _saved(name) for name in _FILTERS},
            folders=[str(folder) for folder in _all_folders() if folder.exists()],
        )

    @classmethod
    def read(cls, path: Path) -> HostState:
        """Return what `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Write it for another process to put back."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def put_back(self) -> None:
        """Take away what the engine, which is gone by now, has added since."""
        for name in HostState.now().links:
            if name not in self.links and name.startswith(("docker0", "br-")):
                run("ip", "link", "delete", name)
        for name, before in self.filters.items():
            _restore_filter(name, before)
        FORWARDING.write_text(self.forwarding)
        for folder in _all_folders():
            if str(folder) not in self.folders:
                _remove(folder)


def _saved(name: str) -> str:
    return run(f"{name}-save") if shutil.which(f"{name}-save") else ""


def _restore_filter(name: str, before: str) -> None:
    commands = undoing(before, _saved(name))
    if commands:
        run(f"{name}-restore", "--noflush", given=commands)


def _all_folders() -> list[Path]:
    return [*_FOLDERS, _CGROUPS / "docker", *_CGROUPS.glob("*/docker")]


def _remove(folder: Path) -> None:
    if folder.is_relative_to(_CGROUPS):
        for nested in sorted(folder.glob("**/"), reverse=True):
            # Its files go with it; one that the kernel still counts something in goes with the machine.
            with suppress(OSError):
                nested.rmdir()
    else:
        shutil.rmtree(folder, ignore_errors=True)
