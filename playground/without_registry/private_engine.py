"""A Docker engine of our own, for a machine where none answers: everything of it is in one folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from images.tools.go_builds import Report
from playground.cluster import folders
from playground.cluster.commands import run, succeeds
from playground.cluster.errors import MachineLacks, NotReady
from playground.cluster.machine import Machine, lacks_for_engine
from playground.without_registry import debian, runtime_wrapper
from playground.without_registry.host_state import HostState

from delaytopic_process.waiting import wait_until

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_SOCKET_PATH_LENGTH = 100  # the kernel's limit is 108, with the zero at the end


class PrivateEngine:
    """dockerd with its own data, socket and state under a folder, which is deleted when it stops."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or folders.engine()
        self._socket = self.folder / "docker.sock"
        self._host_before = self.folder / "host-before.json"
        self._log = self.folder / "dockerd.log"

    @property
    def host(self) -> str:
        """The value of DOCKER_HOST."""
        return f"unix://{self._socket}"

    def answers(self) -> bool:
        """Tell whether it runs, and serves."""
        return self._socket.exists() and succeeds(
            "docker", "--host", self.host, "version", "--format", "{{.Server.Version}}"
        )

    def start(self, machine: Machine, report: Report) -> None:
        """Install what is missing, and start it; raises MachineLacks, CommandFailed and NotReady."""
        lacking = lacks_for_engine(machine)
        if lacking:
            raise MachineLacks(lacking)
        if len(str(self._socket)) > _SOCKET_PATH_LENGTH:
            raise MachineLacks(f"{self._socket} is too long a name for a socket: set XDG_CACHE_HOME to a shorter one")
        install_docker(report)
        self.stop(report)  # what an engine that died has left
        self.folder.mkdir(parents=True)
        HostState.now().write(self._host_before)
        report(f"starting a Docker engine in {self.folder} ...")
        self._launch(self._options(machine))
        if not wait_until(self.answers, timeout_seconds=START_SECONDS, poll_seconds=0.2):
            raise NotReady(f"dockerd did not answer within {START_SECONDS:g} s; its log ends:\n{self._log_end()}")

    def stop(self, report: Report) -> None:
        """End it and everything in it, and put the host back as it was; nothing when there is none."""
        if not self.folder.exists():
            return
        if self.answers():
            report("stopping the Docker engine ...")
            containers = run("docker", "--host", self.host, "ps", "--all", "--quiet").split()
            if containers:
                run("docker", "--host", self.host, "rm", "--force", "--volumes", *containers)
        for pid in self._containers():
            _end(pid, signal.SIGKILL)
        for pid in self._servers():
            _end(pid, signal.SIGTERM, signal.SIGKILL)
        _unmount(self.folder)
        if self._host_before.exists():
            HostState.read(self._host_before).put_back()
        shutil.rmtree(self.folder)

    def _options(self, machine: Machine) -> list[str]:
        options = ["--config-file", str(self._written("daemon.json", "{}\n"))]
        # Newer engines leave their own score alone, and no longer know the option.
        if "--oom-score-adjust" in run("dockerd", "--help"):
            options += ["--oom-score-adjust", "0"]
        if not machine.may_raise_limits:
            wrapper = self._written("runtime-wrapper", _wrapper_for(sys.executable))
            wrapper.chmod(0o755)
            options += ["--add-runtime", f"wrapped={wrapper}", "--default-runtime", "wrapped"]
        return options

    def _launch(self, options: list[str]) -> None:
        places = ["--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec")]
        command = ["dockerd", "--host", self.host, "--pidfile", str(self.folder / "docker.pid"), *places, *options]
        # It outlives this process, and is nobody's child: whoever stops it need not be who started it.
        with self._log.open("ab") as log:
            subprocess.run(["setsid", "--fork", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)

    def _written(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def _servers(self) -> list[int]:
        """dockerd, its containerd, and what that left: all have the folder on their command line."""
        return [
            pid
            for pid, program, arguments in _processes()
            if program.startswith(("dockerd", "containerd")) and str(self.folder) in arguments
        ]

    def _containers(self) -> list[int]:
        """The first processes of containers that outlived a dockerd which was killed; all others end with them."""
        shims = {pid for pid, program, _ in _processes() if program.startswith("containerd-shim")}
        return [child for shim in shims.intersection(self._servers()) for child in _children(shim)]

    def _log_end(self) -> str:
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def install_docker(report: Report) -> None:
    """Dockerd and the docker command, from the distribution, unless they are there."""
    if shutil.which("dockerd") is None:
        report("installing docker.io from the distribution ...")
        debian.install("docker.io", "iptables", "iproute2")
    if shutil.which("docker") is None:  # newer distributions have it apart
        debian.install("docker-cli")


def _wrapper_for(interpreter: str) -> str:
    _, _, rest = Path(runtime_wrapper.__file__).read_text(encoding="utf-8").partition("\n")
    return f"#!{interpreter} -I\n{rest}"


def _processes() -> Iterator[tuple[int, str, str]]:
    """All of this machine: id, name of the program, its arguments as one text."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            program, _, arguments = _text(entry / "cmdline").partition("\0")
            yield int(entry.name), Path(program).name, arguments


def _children(pid: int) -> list[int]:
    return [int(child) for child in _text(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def _text(path: Path) -> str:
    """Return the text of a file of a process that may be gone by now."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _end(pid: int, *signals: signal.Signals) -> None:
    """Send one signal after the other until the process has ended."""
    for number in signals:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if wait_until(lambda: not _text(Path(f"/proc/{pid}/cmdline")), timeout_seconds=STOP_SECONDS, poll_seconds=0.1):
            return


def _unmount(folder: Path) -> None:
    targets = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for target in sorted((one for one in targets if Path(one).is_relative_to(folder)), reverse=True):
        run("umount", "--lazy", target)
