"""Edge: the token that a gateway shows relays: made once, in a Secret that is never written again."""

from __future__ import annotations

from base64 import b64encode
from contextlib import closing, suppress
from hashlib import sha256
from secrets import token_hex
from threading import Event
from typing import Any, Final

import structlog

from delaytopic_operator.config import OperatorConfig, TokenSecret
from delaytopic_operator.errors import ApiServerForbidden, ApiServerUnavailable, Conflict
from delaytopic_operator.kube.client import KubeApi, always
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.transport import KubeTransport
from delaytopic_operator.model import kinds
from delaytopic_operator.model.secret_values import SecretValues

TOKEN_BYTES: Final = 32
RETRY_SECONDS: Final = 2.0

Document = dict[str, Any]

log = structlog.get_logger()


def with_relay_token(config: OperatorConfig, login: ClusterLogin, stop: Event) -> OperatorConfig | None:
    """Return the configuration with the digest of the token in `gateway.tokenSecret`, or as it is without that field.

    While the API server does not answer, or does not allow it, it is asked again, until `stop` is set: then None is
    returned. Raises `SecretMissing` where the Secret lacks the key, and other `OperatorError`s.
    """
    secret = config.gateway.token_secret if config.gateway is not None else None
    if secret is None:
        return config
    with closing(KubeTransport(login, lambda *_: None, at_once=1)) as transport:
        kube = KubeApi(transport, always)
        while not stop.is_set():
            try:
                return config.with_relay_token(sha256(relay_token(kube, config.namespace, secret).encode()).hexdigest())
            except (ApiServerUnavailable, ApiServerForbidden) as error:
                log.warning("waits for the gateway's Secret", name=secret.name, reason=str(error))
                stop.wait(RETRY_SECONDS)
    return None


def relay_token(kube: KubeApi, namespace: str, secret: TokenSecret) -> str:
    """Return the token in the Secret, which is made where there is none. Raises `OperatorError`.

    Operators that start together, leaders or not, agree: of those that make it, all but one are told that it is there,
    and read it.
    """
    found = kube.get(kinds.SECRET, namespace, secret.name)
    if found is None:
        with suppress(Conflict):
            kube.create(_document(namespace, secret, token_hex(TOKEN_BYTES)))
            log.info("made the gateway's Secret", name=secret.name)
        found = kube.get(kinds.SECRET, namespace, secret.name)
    return SecretValues(namespace, {secret.name: found}).text(secret.name, secret.key)


def _document(namespace: str, secret: TokenSecret, token: str) -> Document:
    """Return a Secret that nobody can change: pods that read another token than relays know would be refused."""
    return {
        "apiVersion": kinds.SECRET.api_version,
        "kind": kinds.SECRET.name,
        "metadata": {
            "namespace": namespace,
            "name": secret.name,
            "labels": {"app.kubernetes.io/part-of": "delaytopic", "app.kubernetes.io/component": "gateway"},
        },
        "type": "Opaque",
        "immutable": True,
        "data": {secret.key: b64encode(token.encode()).decode()},
    }
