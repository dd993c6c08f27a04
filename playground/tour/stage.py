"""The stage of the tour: the namespace of a team that is new each time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from images.tools.go_builds import Report, print_progress
from playground.kube.kubectl import Kubectl
from playground.platform.installation import BOOTSTRAP_SERVERS, INFRASTRUCTURE, OPERATOR_NAMESPACE, RELAY_NAMESPACE
from playground.platform.moments import await_moment, now_ms
from playground.tour.volatile import settled

from delaytopic_cli.kubectl.status import WIDTH
from delaytopic_operator.kafka.cache import KEPT_S
from delaytopic_operator.resources.identity import NAMESPACE_LABEL

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorial" / "kubernetes.md"
TEAM: Final = "bakery"
COMMAND_SECONDS: Final = 300.0
_DELETE_TOPICS: Final = """
import sys
from confluent_kafka.admin import AdminClient
client = AdminClient({"bootstrap.servers": sys.argv[1]})
names = [name for name in client.list_topics(timeout=30).topics if name.startswith(sys.argv[2])]
for name, deleted in (client.delete_topics(names) if names else {}).items():
    deleted.result(60)
    print(name)
"""


class TourFailed(Exception):
    """A command of the tour ended with an error; the text has what it printed."""


def clear(kubectl: Kubectl, report: Report = print_progress) -> None:
    """Make the team a new one: without topics, of which the operator remembers nothing."""
    leave(kubectl)
    # Where the record of its topics is kept beyond the DelayTopic.
    kubectl("delete", "configmaps", "-n", OPERATOR_NAMESPACE, "-l", f"{NAMESPACE_LABEL}={TEAM}")
    python = ("exec", "-n", INFRASTRUCTURE, "kafka-0", "--", "python", "-c", _DELETE_TOPICS)
    if kubectl(*python, BOOTSTRAP_SERVERS, f"{TEAM}."):
        report(f"the topics of an earlier tour are deleted; waiting {KEPT_S:g} s for the operator to forget them ...")
        await_moment(now_ms() + int(KEPT_S * 1_000))


def leave(kubectl: Kubectl) -> None:
    """Take the team away, and its relays; topics stay."""
    kubectl("delete", "namespace", TEAM, "--ignore-not-found", "--timeout=100s")
    kubectl("delete", "deployments", "-n", RELAY_NAMESPACE, "-l", f"{NAMESPACE_LABEL}={TEAM}", "--timeout=100s")


def shell(kubeconfig: Path, programs: list[Path], cache: Path) -> Callable[[str], str]:
    """Runs a command as a reader of the page would, and returns what is the same each time."""
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(cache),
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "COLUMNS": str(WIDTH),
    }
    return lambda command: settled(_printed(command, environment))


def _printed(command: str, environment: Mapping[str, str]) -> str:
    result = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_SECONDS,
        env={**os.environ, **environment},
        check=False,
    )
    if result.returncode != 0:
        raise TourFailed(f"{command}\nended with exit code {result.returncode}:\n{result.stdout}")
    return result.stdout
