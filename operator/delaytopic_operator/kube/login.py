"""Edge: where the API server is, and what the operator shows it: as a ServiceAccount, or by a kubeconfig file."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import urllib3
from kubernetes import config as kubernetes_config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from yaml import YAMLError

from delaytopic_operator.errors import ConfigurationError

USER_AGENT = "delaytopic-operator"

_load: Any = kubernetes_config
"""The module, which has no types of its own."""


class ClusterLogin:
    """One login for all connections; thread-safe. Tokens are read again from their files, and asked for again."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """Take a kubeconfig; without one, the login is that of the pod's ServiceAccount. Raises
        `ConfigurationError`.
        """
        self._lock = Lock()
        self._configuration: Any = Configuration()
        try:
            if kubeconfig is None:
                _load.load_incluster_config(client_configuration=self._configuration)
            else:
                _load.load_kube_config(str(kubeconfig), client_configuration=self._configuration, persist_config=False)
        except (kubernetes_config.ConfigException, OSError, YAMLError) as error:
            place = "the pod's ServiceAccount" if kubeconfig is None else str(kubeconfig)
            hint = "; outside of a cluster, give --kubeconfig" if kubeconfig is None else ""
            raise ConfigurationError(f"cannot log in to Kubernetes with {place}: {error}{hint}") from error

    @property
    def server(self) -> str:
        """The address of the API server, without a slash at the end."""
        return str(self._configuration.host).rstrip("/")

    def token(self) -> str | None:
        """The bearer token of this moment, if the login is one by token."""
        with self._lock:
            value = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return str(value).split(" ", 1)[-1].strip() if value else None

    def headers(self) -> dict[str, str]:
        """Return what every request has to carry."""
        token = self.token()
        return {"user-agent": USER_AGENT} | ({"authorization": f"Bearer {token}"} if token else {})

    def connections(self, at_once: int) -> urllib3.PoolManager:
        """Connections of their own, kept open, at most `at_once` of them."""
        self._configuration.connection_pool_maxsize = at_once
        pools: urllib3.PoolManager = RESTClientObject(self._configuration).pool_manager
        return pools

    @property
    def tls(self) -> dict[str, Any]:
        """Return how to connect: `ca_path`, `insecure`, and the client's own `certificate_path` and
        `private_key_path`.
        """
        return {
            "ca_path": self._configuration.ssl_ca_cert,
            "insecure": not self._configuration.verify_ssl,
            "certificate_path": self._configuration.cert_file,
            "private_key_path": self._configuration.key_file,
        }
