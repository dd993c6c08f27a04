"""The token of a gateway, made on a real API server: once, whoever starts, and never written again."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import Barrier, Event
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from tests.cluster.access import Access
from tests.support.operator.process import OperatorProcess

from delaytopic_operator.config import GatewayConfig, OperatorConfig, TokenSecret
from delaytopic_operator.errors import SecretMissing
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.model import kinds
from delaytopic_operator.runtime.relay_token import with_relay_token

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAME = "delays-relay-token"
GATEWAY = {"tokenSecret": {"name": NAME}}
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def config(namespace: str) -> OperatorConfig:
    return OperatorConfig(namespace=namespace, gateway=GatewayConfig(token_secret=TokenSecret(name=NAME)))


@pytest.fixture
def login(control_plane: ControlPlane) -> ClusterLogin:
    return ClusterLogin(control_plane.kubeconfig)


def secret_of(kube: KubeApi, namespace: str) -> dict[str, Any]:
    found = kube.get(kinds.SECRET, namespace, NAME)
    assert found is not None
    return found


def digest_of(secret: dict[str, Any]) -> str:
    return sha256(b64decode(secret["data"]["token"])).hexdigest()


def told(config: OperatorConfig | None) -> str | None:
    """Return the digest that relays are told."""
    assert config is not None
    assert config.gateway is not None
    return config.gateway.token_sha256


def make(kube: KubeApi, namespace: str, **data: str) -> None:
    metadata = {"namespace": namespace, "name": NAME}
    kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})


def test_a_secret_that_is_missing_is_made_with_a_token_that_cannot_be_changed(
    config: OperatorConfig, login: ClusterLogin, kube: KubeApi, namespace: str
) -> None:
    known = with_relay_token(config, login, Event())

    secret = secret_of(kube, namespace)
    assert told(known) == digest_of(secret)
    assert (secret["immutable"], len(b64decode(secret["data"]["token"]))) == (True, 64)
    assert secret["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "delaytopic",
        "app.kubernetes.io/component": "gateway",
    }


def test_a_token_that_is_there_is_kept(
    config: OperatorConfig, login: ClusterLogin, kube: KubeApi, namespace: str
) -> None:
    make(kube, namespace, token="0123456789abcdef0123456789abcdef")
    before = secret_of(kube, namespace)

    known = with_relay_token(config, login, Event())

    assert told(known) == sha256(b"0123456789abcdef0123456789abcdef").hexdigest()
    assert secret_of(kube, namespace) == before


def test_operators_that_start_together_agree_on_one_token(
    config: OperatorConfig, login: ClusterLogin, kube: KubeApi, namespace: str
) -> None:
    together = Barrier(4)

    def start(_: int) -> str | None:
        together.wait(30)
        return told(with_relay_token(config, login, Event()))

    with ThreadPoolExecutor(4) as operators:
        digests = set(operators.map(start, range(4)))

    assert digests == {digest_of(secret_of(kube, namespace))}


def test_a_secret_without_the_key_is_named_and_not_written_to(
    config: OperatorConfig, login: ClusterLogin, kube: KubeApi, namespace: str
) -> None:
    make(kube, namespace, other="value")
    before = secret_of(kube, namespace)

    with pytest.raises(SecretMissing, match=f"the key token of the Secret {namespace}/{NAME} is missing or empty"):
        with_relay_token(config, login, Event())

    assert secret_of(kube, namespace) == before


@pytest.fixture
def account(control_plane: ControlPlane, namespace: str) -> str:
    """A user who may read and make Secrets in the namespace, as the chart lets the operator, and no more."""
    user = f"operator-of-{namespace}"
    rights = [Access(verb, "", "secrets") for verb in ("get", "create")]
    rules = [{"apiGroups": [each.group], "resources": [each.resource], "verbs": [each.verb]} for each in rights]
    place = f"{RBAC}/namespaces/{namespace}"
    control_plane.client.create(f"{place}/roles", {"metadata": {"name": "operator"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"}
    binding = {"metadata": {"name": "operator"}, "roleRef": role, "subjects": [{"kind": "User", "name": user}]}
    control_plane.client.create(f"{place}/rolebindings", binding)
    return user


def test_the_rights_to_read_and_make_secrets_are_enough(
    config: OperatorConfig, control_plane: ControlPlane, account: str, kube: KubeApi, namespace: str
) -> None:
    login = ClusterLogin(control_plane.kubeconfig_for_user(account))

    # The server's authorizer learns of a role a moment later: until then it is asked again.
    known = with_relay_token(config, login, Event())

    assert told(known) == digest_of(secret_of(kube, namespace))


def test_an_operator_that_is_told_to_stop_waits_no_longer(config: OperatorConfig, control_plane: ControlPlane) -> None:
    login, stop = ClusterLogin(control_plane.kubeconfig_for_user("nobody")), Event()
    stop.set()

    assert with_relay_token(config, login, stop) is None


def test_a_leader_and_its_standby_keep_the_token_when_they_start_again(
    make_operator: Callable[..., OperatorProcess], kube: KubeApi, namespace: str
) -> None:
    settings: dict[str, object] = {"watchNamespaces": [namespace], "relayNamespaces": [], "gateway": GATEWAY}
    leader, standby = (make_operator(name, namespace, **settings) for name in ("leader", "standby"))
    leader.start().wait_until("leader")
    first = secret_of(kube, namespace)

    standby.start().wait_until("standby")
    leader.terminate()
    standby.wait_until("leader")
    leader.start().wait_until("standby")

    assert secret_of(kube, namespace) == first
    assert [len(each.log_lines("made the gateway's Secret")) for each in (leader, standby)] == [1, 0]
