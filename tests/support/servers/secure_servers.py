"""A real Kafka behind SASL_SSL and mutual TLS, beside a plain listener through which a test looks on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.support.relay.route import Route
from tests.support.servers.tls import Certificates

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.kafka_settings import ClusterNode
from delaytopic_local.servers.process import free_port

USERNAME = "relay"
PASSWORD = "kafka-password-in-a-file"
SCRAM = "SCRAM-SHA-512"
COMPILE_ONCE = ("-XX:TieredStopAtLevel=1",)
"""The second compiler would take more of two cores than it gives back in the minutes of a test run."""
_LOGIN = "org.apache.kafka.common.security"


GuardedRoute = Callable[..., Route]
"""Makes a DelayTopic for a listener and its `security`."""


@dataclass(frozen=True)
class SecureKafka:
    """`plain` is for the test, `sasl` (SASL_SSL: PLAIN, SCRAM-SHA-512) and `mutual` (SSL) for relays."""

    plain: str
    sasl: str
    mutual: str


class SecureRedis(NamedTuple):
    """Behind TLS with client certificates, and a password."""

    url: str
    password: str


@contextmanager
def secure_kafka(
    directory: Path, certificates: Certificates, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SecureKafka]:
    """Start it, with one user and further broker settings; stop it at the end."""
    plain, sasl, mutual, controller = ports = [free_port() for _ in range(4)]
    assert len(set(ports)) == len(ports)
    guarded = {
        **_listeners({"PLAINTEXT": plain, "GUARDED": sasl, "MUTUAL": mutual}, controller),
        **key_stores(directory, certificates),
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "listener.name.guarded.plain.sasl.jaas.config": (
            f'{_LOGIN}.plain.PlainLoginModule required user_{USERNAME}="{PASSWORD}";'
        ),
        "listener.name.guarded.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        "listener.name.mutual.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    node = ClusterNode([f"127.0.0.1:{controller}"])
    server = KafkaServer(directory, port=plain, node=node, settings={**guarded, **settings}, jvm_options=COMPILE_ONCE)
    try:
        server.start()
        addresses = [f"127.0.0.1:{port}" for port in (plain, sasl, mutual)]
        _add_user(addresses[0])
        yield SecureKafka(*addresses)
    finally:
        server.kill()


def _listeners(ports: dict[str, int], controller: int) -> dict[str, str]:
    outside = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    return {
        "listeners": f"{outside},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": outside,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_SSL,MUTUAL:SSL",
    }


def key_stores(directory: Path, certificates: Certificates) -> dict[str, str]:
    """Return the broker's settings for its certificate, and for the authority of its clients'."""
    key_store = directory / "server-with-key.pem"
    key_store.write_text(certificates.server_key.read_text() + certificates.server.read_text())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
    }


def _add_user(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    user = UserScramCredentialUpsertion(
        USERNAME, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
    )
    for done in admin.alter_user_scram_credentials([user]).values():
        done.result(30)


def by_password(
    directory: Path, certificates: Certificates, mechanism: str, password: str = PASSWORD
) -> dict[str, Any]:
    """`kafka.security` of a relay that logs in, its secrets in files of this directory."""
    (directory / "username").write_text(f"{USERNAME}\n")
    (directory / "password").write_text(f"{password}\n")
    return {
        "protocol": "SASL_SSL",
        "mechanism": mechanism,
        "caFile": str(certificates.authority),
        "usernameFile": str(directory / "username"),
        "passwordFile": str(directory / "password"),
    }


def deny(bootstrap_servers: str, name: str, *operations: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> None:
    """Take these rights on a topic from the user, and leave it those that it needs to see and to read it, unless taken.

    `kind` is that of what has the name, where it is no topic.
    """
    denied = [_rule(kind, name, operation, AclPermissionType.DENY) for operation in operations]
    left = [AclOperation.DESCRIBE, *([AclOperation.READ] if kind is ResourceType.TOPIC else [])]
    allowed = [_rule(kind, name, operation, AclPermissionType.ALLOW) for operation in left]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.create_acls([*denied, *allowed]).values():
        done.result(30)


def allow_again(bootstrap_servers: str, name: str) -> None:
    """Take all rules of a topic back, so that everybody may do everything with it again."""
    of_anybody: Any = None
    of_topic = ResourceType.TOPIC, name, ResourcePatternType.LITERAL
    rules = AclBindingFilter(*of_topic, of_anybody, of_anybody, AclOperation.ANY, AclPermissionType.ANY)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.delete_acls([rules]).values():
        done.result(30)


def _rule(kind: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    where = (kind, name, ResourcePatternType.LITERAL)
    return AclBinding(*where, f"User:{USERNAME}", "*", operation, permission)
