"""The last words of `make up`: what to do with the cluster. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playground.platform.installation import OPERATOR_NAMESPACE, RELAY_NAMESPACE
from playground.platform.installed_platform import RELEASE
from playground.sample import NAME, PER_SECOND, SENDER, TEAM

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.identity import relays_name

OPERATOR_PORT: Final = 8081
RELAY_PORT: Final = 8080


def next_steps(kubeconfig: Path, program_folders: Sequence[Path]) -> str:
    """Lines for a shell, and where things are; `program_folders` have kubectl and its plugin."""
    folders = os.pathsep.join(str(folder) for folder in program_folders)
    operator = f"kubectl port-forward -n {OPERATOR_NAMESPACE} deployment/{RELEASE} {OPERATOR_PORT}"
    relays = f"kubectl port-forward -n {RELAY_NAMESPACE} deployment/{relays_name(Key(TEAM, NAME))} {RELAY_PORT}"
    return f"""\
delaytopic runs, and {SENDER} in the namespace {TEAM} sends {PER_SECOND} records a second to its DelayTopic {NAME}.

  export KUBECONFIG={kubeconfig}
  export PATH={folders}:$PATH

  kubectl delaytopic status -A                    all DelayTopics
  kubectl delaytopic status {NAME} -n {TEAM}
  kubectl delaytopic pending {NAME} -n {TEAM} --limit 5
  kubectl scale -n {TEAM} deployment/{SENDER} --replicas=0

Pages, while one of these runs:
  {operator}
    http://localhost:{OPERATOR_PORT}/metrics
  {relays}
    http://localhost:{RELAY_PORT}/metrics  http://localhost:{RELAY_PORT}/status  http://localhost:{RELAY_PORT}/pending
Dashboards for a Grafana of yours (none runs here): charts/delaytopic/dashboards/*.json, and in the cluster
  kubectl get configmaps -n {OPERATOR_NAMESPACE} -l grafana_dashboard=1

make tour runs docs/tutorial/kubernetes.md here and writes what it prints into it; make down takes everything away."""
