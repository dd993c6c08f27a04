"""Edge: the API server, as this gateway's own account: lists, and reviews of others. Documents are plain dicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import config as kubernetes_config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from delaytopic_gateway.errors import ApiServerUnreachableError
from delaytopic_process.errors import InputError

Document = dict[str, Any]

DEADLINE_S: Final = 10.0
CONNECT_S: Final = 3.0
AT_ONCE: Final = 16
PAGE_SIZE: Final = 500
OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE: Final = "delaytopic-system"

_load: Any = kubernetes_config
"""The module, which has no types of its own."""


class ApiServer:
    """One API server; thread-safe. Tokens of its own are read again from their files."""

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        """Connect as a kubeconfig says; without one, as the ServiceAccount of the pod. Raises `InputError`."""
        self._lock = Lock()
        self._configuration: Any = Configuration()
        try:
            if kubeconfig is None and context is None:
                _load.load_incluster_config(client_configuration=self._configuration)
            else:
                file = str(kubeconfig) if kubeconfig is not None else None
                _load.load_kube_config(file, context, self._configuration, persist_config=False)
        except (kubernetes_config.ConfigException, OSError, YAMLError) as error:
            hint = "" if kubeconfig or context else "; outside of a cluster, give --kubeconfig or --context"
            raise InputError(f"cannot log in to Kubernetes: {error}{hint}") from error
        self._configuration.connection_pool_maxsize = AT_ONCE
        self._url = str(self._configuration.host).rstrip("/")
        self._connections: urllib3.PoolManager = RESTClientObject(self._configuration).pool_manager

    def create(self, path: str, document: Document) -> Document:
        """Return the answer to a document. Raises `ApiServerUnreachableError`."""
        return self._send("POST", path, json.dumps(document).encode())

    def list(self, path: str, query: Mapping[str, str] | None = None) -> list[Document]:
        """Return all objects of a collection. Raises `ApiServerUnreachableError`."""
        found: list[Document] = []
        further = ""
        while True:
            asked = {**(query or {}), "limit": str(PAGE_SIZE), **({"continue": further} if further else {})}
            page = self._send("GET", f"{path}?{urlencode(asked)}")
            found += page.get("items") or []
            further = (page.get("metadata") or {}).get("continue") or ""
            if not further:
                return found

    def _send(self, method: str, path: str, body: bytes | None = None) -> Document:
        try:
            answer = self._connections.request(
                method,
                self._url + path,
                body=body,
                headers={"content-type": "application/json", "accept": "application/json", **self._credential()},
                timeout=urllib3.Timeout(connect=CONNECT_S, total=DEADLINE_S),
                # A kept connection may have been closed meanwhile; nothing that is sent here changes anything.
                retries=urllib3.Retry(total=1, redirect=0, status=0, allowed_methods=None),
            )
        except HTTPError as error:
            text = "the Kubernetes API server does not answer; nothing is allowed until it does: try again"
            raise ApiServerUnreachableError(text) from error
        if answer.status >= 300:
            place = path.partition("?")[0]
            raise ApiServerUnreachableError(
                f"the Kubernetes API server answered {answer.status} to this gateway's {method} {place}; nothing is "
                "allowed until it answers: look after the rights of the gateway's ServiceAccount, or try again"
            )
        try:
            document = json.loads(answer.data)
        except ValueError as error:
            raise ApiServerUnreachableError(
                "the Kubernetes API server answered with something else than JSON"
            ) from error
        return document if isinstance(document, dict) else {}

    def _credential(self) -> dict[str, str]:
        with self._lock:
            value = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return {"authorization": f"Bearer {str(value).split(' ', 1)[-1].strip()}"} if value else {}


def own_namespace() -> str:
    """Return the namespace that this process runs in; where it is no pod, that of the operator by default."""
    try:
        return OWN_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return DEFAULT_NAMESPACE
