"""A kubectl that is a script: it knows a DelayTopic and a RecurringRecord.

It forwards ports as a script of each pod or Service says.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delaytopic_process.waiting import wait_until

NAMESPACE: Final = "shop"
NAME: Final = "reminders"
RECURRING: Final = "report"
RELAYS: Final = "relays"
SYSTEM: Final = "delaytopic-system"
PATIENCE_SECONDS: Final = 20.0
"""Of a test, for what takes no time."""

FOREVER: Final = "exec sleep 600"

_KUBECTL: Final = """\
#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >> asked
case "$*" in
*port-forward*)
  for argument; do
    case $argument in pod/*|service/*) pod=${argument#*/} ;; esac
  done
  echo $$ > "$pod.new" && mv "$pod.new" "$pod.pid"
  . "./$pod.sh" ;;
*"get services"*) cat services.json || exit 1 ;;
*delaytopics*) cat topic.json ;;
*recurringrecords*) cat recurring.json ;;
*pods*) cat pods.json ;;
*) echo "Error from server (Forbidden): not scripted" >&2; exit 1 ;;
esac
"""


def forwarding(port: int, then: str = FOREVER) -> str:
    """Lines of a script that says what kubectl does of a port that is forwarded; `then` is done next."""
    return f"echo 'Forwarding from 127.0.0.1:{port} -> 8080'\n{then}\n"


def failing(said: str) -> str:
    """Lines of a script that ends with an error."""
    return f"cat >&2 <<'END'\n{said}\nEND\nexit 1\n"


@dataclass(frozen=True)
class ScriptedKubectl:
    """The folder of the script; it has to be put in front of the PATH."""

    directory: Path

    def write(self, **pods: str) -> None:
        """Make the script; `pods` are those of the DelayTopic, each with what is done to forward its port."""
        program = self.directory / "kubectl"
        program.write_text(_KUBECTL)
        program.chmod(0o700)
        topic = {"metadata": {"namespace": NAMESPACE, "name": NAME}, "spec": {}}
        (self.directory / "topic.json").write_text(json.dumps(topic))
        recurring = {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "RecurringRecord",
            "metadata": {"namespace": NAMESPACE, "name": RECURRING, "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {
                "delayTopic": NAME,
                "cron": "0 9 * * mon-fri",
                "timeZone": "Europe/Berlin",
                "key": "k",
                "headers": {"kind": "daily"},
                "value": "report",
            },
        }
        (self.directory / "recurring.json").write_text(json.dumps(recurring))
        items = [_running_pod(name) for name in pods]
        (self.directory / "pods.json").write_text(json.dumps({"items": items}))
        for name, script in pods.items():
            (self.directory / f"{name}.sh").write_text(script)

    def write_services(self, **services: str) -> None:
        """Let these be the gateway's Services, each with what is done to forward its port."""
        for name, script in services.items():
            (self.directory / f"{name}.sh").write_text(script)
        items = [_gateway(name) for name in services]
        (self.directory / "services.json").write_text(json.dumps({"items": items}))

    def asked(self) -> Sequence[str]:
        """Return the arguments that it was called with, a line each call."""
        return (self.directory / "asked").read_text().splitlines()

    def process(self, pod: str) -> Process:
        """Return what forwards a pod's port, as soon as it runs."""
        return Process.of(self.directory / f"{pod}.pid")


@dataclass(frozen=True)
class Process:
    """A process of somebody else, which has begun."""

    descriptor: int

    @classmethod
    def of(cls, file: Path) -> Process:
        """Wait for the file with its id."""
        assert wait_until(file.exists, timeout_seconds=PATIENCE_SECONDS), f"{file.name} was not written"
        return cls(os.pidfd_open(int(file.read_text())))

    def ends(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait until it has ended."""
        ended = bool(select.select([self.descriptor], [], [], seconds)[0])
        os.close(self.descriptor)
        return ended


def _running_pod(name: str) -> dict[str, object]:
    return {"metadata": {"namespace": RELAYS, "name": name}, "status": {"phase": "Running"}}


def _gateway(name: str) -> dict[str, object]:
    ports = [{"name": "metrics", "port": 9090}, {"name": "http", "port": 80}]
    return {"metadata": {"namespace": SYSTEM, "name": name}, "spec": {"ports": ports}}
