"""A container's probes, asked at the pod's own address."""

from __future__ import annotations

import http.client
import socket
import subprocess
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]

# A probe is asked this often at least, whatever its period: tests wait for it to pass. It fails as late as it says.
LONGEST_PERIOD_SECONDS = 0.5


class Probe:
    """One probe of a container: when to ask, and how many answers in a row count."""

    def __init__(self, spec: Object, container: Object, pod_ip: str, run: Callable[[list[str]], list[str]]) -> None:
        """`run` maps the command line of an exec probe to one of this machine."""
        self._spec = spec
        self._ports = {port["name"]: port["containerPort"] for port in container.get("ports", []) if "name" in port}
        self._pod_ip = pod_ip
        self._run = run
        self._next = spec.get("initialDelaySeconds", 0) * 1.0
        period = float(spec.get("periodSeconds", 10))
        self._period = min(period, LONGEST_PERIOD_SECONDS)
        self._fails_after = period * spec.get("failureThreshold", 3)
        self._bad_since: float | None = None
        self._successes_in_a_row = 0
        self.failed = False
        """True if no good answer has come for as long as its failures may last."""
        self.passes = False
        """True if enough good answers came in a row, and it has not failed since."""

    def ask(self, age_seconds: float) -> None:
        """Ask if it is time to, for a process of this age."""
        if age_seconds < self._next:
            return
        self._next = age_seconds + self._period
        if self._answers():
            self._successes_in_a_row, self._bad_since = self._successes_in_a_row + 1, None
        else:
            self._successes_in_a_row = 0
            self._bad_since = age_seconds if self._bad_since is None else self._bad_since
        self.failed = self._bad_since is not None and age_seconds - self._bad_since >= self._fails_after
        if self._successes_in_a_row >= self._spec.get("successThreshold", 1):
            self.passes = True
        elif self.failed:
            self.passes = False

    def _answers(self) -> bool:
        timeout = float(self._spec.get("timeoutSeconds", 1))
        try:
            if "httpGet" in self._spec:
                return self._page_is_good(self._spec["httpGet"], timeout)
            if "tcpSocket" in self._spec:
                return self._is_listening(self._spec["tcpSocket"], timeout)
            if "exec" in self._spec:
                return self._exits_well(self._spec["exec"]["command"], timeout)
        except (OSError, http.client.HTTPException, subprocess.SubprocessError):
            return False
        return True

    def _page_is_good(self, get: Object, timeout: float) -> bool:
        connection = http.client.HTTPConnection(self._pod_ip, self._port(get["port"]), timeout=timeout)
        try:
            connection.request("GET", get.get("path", "/"), headers={"User-Agent": "kube-probe/tests"})
            return connection.getresponse().status < http.client.BAD_REQUEST
        finally:
            connection.close()

    def _is_listening(self, where: Object, timeout: float) -> bool:
        with socket.create_connection((self._pod_ip, self._port(where["port"])), timeout=timeout):
            return True

    def _exits_well(self, command: list[str], timeout: float) -> bool:
        result = subprocess.run(self._run(command), timeout=timeout, capture_output=True, check=False)
        return result.returncode == 0

    def _port(self, port: str | int) -> int:
        return int(self._ports.get(port, port)) if isinstance(port, str) else port
