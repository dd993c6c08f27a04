"""Nothing is installed, and later removed, where somebody else has it."""

from __future__ import annotations

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.e2e.support.vacancy import Occupied, require_vacancy


@pytest.mark.integration
@pytest.mark.kubernetes
def test_a_cluster_that_has_delaytopic_already_is_refused(control_plane: ControlPlane) -> None:
    with pytest.raises(Occupied, match=r"^the cluster has delaytopics\.delaytopic\.dev, delayclasses\.delaytopic\.dev"):
        require_vacancy(control_plane.client)
