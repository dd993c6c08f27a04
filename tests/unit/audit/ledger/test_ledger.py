"""Tests of which places a ledger can be in."""

from __future__ import annotations

import pytest

from delaytopic_audit.errors import LedgerError
from delaytopic_audit.ledger.ledger import require_shared


@pytest.mark.parametrize("master", ["spark://a:7077", "k8s://https://a", "yarn"])
@pytest.mark.parametrize("root", ["audit-ledger", "/var/ledger"])
def test_a_folder_of_one_machine_is_no_ledger_of_executors_elsewhere(root: str, master: str) -> None:
    with pytest.raises(LedgerError, match=f"{root} is a folder of this machine, which executors of {master} do not"):
        require_shared(root, master)


@pytest.mark.parametrize(
    ("root", "master"), [("s3a://a/b", "spark://a:7077"), ("file:///mnt/a", "yarn"), ("audit-ledger", "local[*]")]
)
def test_a_place_that_all_executors_reach_is_one(root: str, master: str) -> None:
    require_shared(root, master)
