"""An API server that is killed and started again: clients and operators find it without help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playground.kube.control_plane import OwnControlPlane
from tests.support.operator.documents import config_map, delay_topic
from tests.support.operator.process import OperatorProcess
from tests.support.relay.process import wait_for

from delaytopic_operator.errors import ApiServerUnavailable
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model import kinds

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAMESPACE = "default"


@pytest.mark.nightly
@pytest.mark.takes_long("the API server starts anew")
def test_a_client_and_an_operator_find_an_api_server_that_was_away(
    own_control_plane: OwnControlPlane, make_kube: Callable[..., KubeApi], tmp_path: Path
) -> None:
    # Given a client and an operator that have talked to it
    kubeconfig = own_control_plane.kubeconfig
    impatient, kube = make_kube(kubeconfig, deadline_s=2), make_kube(kubeconfig)
    impatient.create(config_map(NAMESPACE))
    operator = OperatorProcess(
        tmp_path, "one", kubeconfig, NAMESPACE, {"watchNamespaces": [NAMESPACE], "relayNamespaces": [], "resync": "1h"}
    ).start()
    try:
        operator.wait_until("leader")
        kube.apply(delay_topic(NAMESPACE, "before"), "people")
        wait_for(lambda: f"{NAMESPACE}/before" in operator.passes(), operator.why)

        # When it is killed, and started again
        with own_control_plane.without_api_server(), pytest.raises(ApiServerUnavailable, match="cannot reach"):
            impatient.get(kinds.CONFIG_MAP, NAMESPACE, "one")

        # Then the client reads again, and the operator, which lists once an hour, hears of what is new
        assert kube.get(kinds.CONFIG_MAP, NAMESPACE, "one") is not None
        kube.apply(delay_topic(NAMESPACE, "after"), "people")
        wait_for(lambda: f"{NAMESPACE}/after" in operator.passes(), operator.why)
        assert operator.child.poll() is None
        assert operator.get("/livez") == "alive\n"
    finally:
        operator.stop_whatever_happens()
