"""Requests to the API server, counted from its audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

# Metadata only. The control plane's own requests would hide the others: thousands of them while namespaces go.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver", "system:kube-controller-manager"]}
- {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
- {level: None, nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/version", "/metrics"]}
- {level: Metadata}
"""


class Call(NamedTuple):
    """One request; `resource` is such as `configmaps` or `delaytopics/status`, `code` the answer's."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    user: str
    agent: str
    code: int


class AuditLog:
    """Reads the log file that an API server writes. A watch counts once, when it begins."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """Now, for `calls(since=...)`."""
        return self._path.stat().st_size if self._path.exists() else 0

    def calls(self, since: int = 0, *, user: str = "", agent: str = "") -> list[Call]:
        """Return those answered since a mark; of a user, or of agents whose name begins so, if wanted."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            log.seek(since)
            lines = [line for line in log if line.endswith(b"\n")]
        events = (json.loads(line) for line in lines)
        found = (_call(event) for event in events if _counts(event))
        return [call for call in found if user in ("", call.user) and call.agent.startswith(agent)]


def by_verb(calls: Iterable[Call]) -> dict[str, int]:
    """Return how many of each verb: get, list, watch, create, update, patch, delete, deletecollection."""
    return dict(Counter(call.verb for call in calls))


def _counts(event: dict[str, Any]) -> bool:
    """A request is logged when it is answered, and a watch when it starts and again when it ends."""
    started = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
    return bool(event["stage"] == started)


def _call(event: dict[str, Any]) -> Call:
    reference = event.get("objectRef", {})
    resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
    return Call(
        verb=event["verb"],
        group=reference.get("apiGroup", ""),
        resource=resource or event["requestURI"].partition("?")[0],
        namespace=reference.get("namespace", ""),
        name=reference.get("name", ""),
        user=event["user"].get("username", ""),
        agent=event.get("userAgent", ""),
        code=event.get("responseStatus", {}).get("code", 0),
    )
