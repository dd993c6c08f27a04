from __future__ import annotations

import pytest
from tests.e2e.cluster.errors import MachineLacks
from tests.e2e.support.preparing import preparing


def test_what_a_machine_lacks_ends_the_session_with_one_line(pytestconfig: pytest.Config) -> None:
    with pytest.raises(pytest.exit.Exception) as ended, preparing(pytestconfig):
        raise MachineLacks("KUBECONFIG=none has to name one file")

    assert (ended.value.msg, ended.value.returncode) == (
        "no test of the cluster can run: KUBECONFIG=none has to name one file",
        1,
    )


def test_a_mistake_of_the_tests_themselves_is_an_error_with_its_place(pytestconfig: pytest.Config) -> None:
    with pytest.raises(KeyError), preparing(pytestconfig):
        raise KeyError("missing")
