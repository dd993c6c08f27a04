"""A container's probes: pages that are asked for at the pod's own address."""

from __future__ import annotations

import http.client
from typing import Any

Object = dict[str, Any]

# A probe is asked this often at least, whatever its period: tests wait for it to pass. It fails as late as it says.
LONGEST_PERIOD_SECONDS = 0.5


class Probe:
    """One probe of a container: when to ask, and for how long it may fail."""

    def __init__(self, spec: Object, container: Object, pod_ip: str) -> None:
        """`spec` asks for a page: other probes are unknown here."""
        self._spec = spec
        self._ports = {port["name"]: port["containerPort"] for port in container.get("ports", []) if "name" in port}
        self._pod_ip = pod_ip
        self._next = spec.get("initialDelaySeconds", 0) * 1.0
        period = float(spec.get("periodSeconds", 10))
        self._period = min(period, LONGEST_PERIOD_SECONDS)
        self._fails_after = period * spec.get("failureThreshold", 3)
        self._bad_since: float | None = None
        self.failed = False
        """True if no good answer has come for as long as its failures may last."""
        self.passes = False
        """True if a good answer came, and it has not failed since."""

    def ask(self, age_seconds: float) -> None:
        """Ask if it is time to, for a process of this age."""
        if age_seconds < self._next:
            return
        self._next = age_seconds + self._period
        if self._answers():
            self._bad_since, self.passes = None, True
        elif self._bad_since is None:
            self._bad_since = age_seconds
        self.failed = self._bad_since is not None and age_seconds - self._bad_since >= self._fails_after
        self.passes = self.passes and not self.failed

    def _answers(self) -> bool:
        timeout = float(self._spec.get("timeoutSeconds", 1))
        try:
            return self._page_is_good(self._spec["httpGet"], timeout)
        except (OSError, http.client.HTTPException):
            return False

    def _page_is_good(self, get: Object, timeout: float) -> bool:
        connection = http.client.HTTPConnection(self._pod_ip, self._port(get["port"]), timeout=timeout)
        try:
            connection.request("GET", get.get("path", "/"), headers={"User-Agent": "kube-probe/tests"})
            return connection.getresponse().status < http.client.BAD_REQUEST
        finally:
            connection.close()

    def _port(self, port: str | int) -> int:
        return int(self._ports.get(port, port)) if isinstance(port, str) else port
