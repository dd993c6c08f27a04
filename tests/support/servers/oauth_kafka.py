"""A real Kafka that lets in who shows a token of an issuer, beside a plain listener through which a test looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.harness.fixtures import QUICK_START
from tests.support.servers.issuer import BROKERS, CLIENT_ID, CLIENT_SECRET, Issuer
from tests.support.servers.secure_servers import key_stores

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.kafka_settings import ClusterNode
from delaytopic_local.servers.process import free_port

SCOPE: Final = "kafka"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_LONGEST_SESSION_MS: Final = 3_600_000
"""With any, the broker ends a connection when the token that opened it does, unless it is shown another."""


@dataclass(frozen=True)
class OAuthKafka:
    """`plain` is for the test, `guarded` (SASL_SSL: OAUTHBEARER) for clients with tokens of the issuer."""

    plain: str
    guarded: str
    issuer: Issuer


@contextmanager
def oauth_kafka(directory: Path, issuer: Issuer) -> Iterator[OAuthKafka]:
    """Start one that trusts a running issuer; stop it at the end."""
    plain, guarded, controller = ports = [free_port() for _ in range(3)]
    assert len(set(ports)) == len(ports)
    outside = f"PLAINTEXT://127.0.0.1:{plain},GUARDED://127.0.0.1:{guarded}"
    listener = "listener.name.guarded"
    settings = {
        "listeners": f"{outside},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": outside,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_SSL",
        **key_stores(directory, issuer.certificates),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{_PACKAGE}.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{listener}.oauthbearer.connections.max.reauth.ms": str(_LONGEST_SESSION_MS),
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": issuer.jwks_url,
        f"{listener}.sasl.oauthbearer.expected.audience": BROKERS,
        f"{listener}.sasl.oauthbearer.expected.issuer": issuer.name,
        "group.min.session.timeout.ms": "1000",
    }
    server = KafkaServer(
        directory / "kafka",
        port=plain,
        node=ClusterNode([f"127.0.0.1:{controller}"]),
        settings=settings,
        heap_mib=384,
        jvm_options=(*QUICK_START, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.jwks_url}"),
    )
    try:
        server.start()
        yield OAuthKafka(f"127.0.0.1:{plain}", f"127.0.0.1:{guarded}", issuer)
    finally:
        server.kill()


def by_token(directory: Path, issuer: Issuer, *, secret: str = CLIENT_SECRET, **oauth: Any) -> dict[str, Any]:
    """`kafka.security` of a relay that shows tokens, the client's id and secret in files of this directory."""
    (directory / "client-id").write_text(f"{CLIENT_ID}\n")
    (directory / "client-secret").write_text(f"{secret}\n")
    return {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "caFile": str(issuer.certificates.authority),
        "oauth": {
            "tokenEndpointUrl": issuer.token_url,
            "clientIdFile": str(directory / "client-id"),
            "clientSecretFile": str(directory / "client-secret"),
            "scope": SCOPE,
            "extensions": {"logicalCluster": "lkc-1"},
            "caFile": str(issuer.certificates.authority),
            **oauth,
        },
    }
