"""Argo CD's own ConfigMap with the customizations, for those who do not build them in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ACTIONS: Final = ("pause", "resume", "reconcile")
KINDS: Final = ("DelayTopic", "RecurringRecord")
_ACTING: Final = "DelayTopic"
_HEAD: Final = """\
# Generated from resource_customizations/ by `python -m charts.tools`. To merge into the ConfigMap argocd-cm.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels: {app.kubernetes.io/part-of: argocd}
data:
"""
_REPLICAS: Final = """\
  # With autoscaling mode External the number of relays is an HPA's, through /scale: no drift.
  resource.customizations.ignoreDifferences.delaytopic.dev_DelayTopic: |
    jsonPointers: [/spec/relay/replicas]
"""


def argo_config(scripts: Mapping[str, str]) -> str:
    """The document; `scripts` by their paths below the folder of the customizations."""
    parts = [_HEAD]
    for kind in KINDS:
        parts.append(f"  resource.customizations.health.delaytopic.dev_{kind}: |\n")
        parts.append(_indented(scripts[f"{kind}/health.lua"], 4))
    parts.append(f"  resource.customizations.actions.delaytopic.dev_{_ACTING}: |\n    discovery.lua: |\n")
    parts.append(_indented(scripts[f"{_ACTING}/actions/discovery.lua"], 6))
    parts.append("    definitions:\n")
    for name in ACTIONS:
        parts.append(f"      - name: {name}\n        action.lua: |\n")
        parts.append(_indented(scripts[f"{_ACTING}/actions/{name}/action.lua"], 10))
    return "".join([*parts, _REPLICAS])


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line if line.strip() else line for line in text.splitlines(keepends=True))
