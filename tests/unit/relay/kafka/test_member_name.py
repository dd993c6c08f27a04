from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka.member_name import MOST_ON_A_HOST, member_name, name_on_host

HOST = re.sub(r"[^a-zA-Z0-9._-]+", "-", socket.gethostname())
HOLD = """
import os, signal, sys
from pathlib import Path
from delaytopic_relay.kafka.member_name import name_on_host

with name_on_host("shop", Path(sys.argv[1])) as name:
    print(name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", ["shop-reminders-relay-7f9c6d-x2x4z", "shop.Reminders_1", "a" * 249])
def test_names_of_pods_and_topics_are_names(name: str) -> None:
    assert member_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "shop/reminders", "a b", "a\n", "ä"])
def test_what_brokers_refuse_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigurationError, match="--name may have 249 letters"):
        member_name(name)


def test_each_relay_of_a_group_on_a_host_has_the_least_name_that_is_free(tmp_path: Path) -> None:
    with name_on_host("shop", tmp_path) as first, name_on_host("other", tmp_path) as of_another_group:
        with name_on_host("shop", tmp_path) as second:
            pass
        with name_on_host("shop", tmp_path) as third:
            pass

    assert (first, of_another_group, second, third) == (f"{HOST}-0", f"{HOST}-0", f"{HOST}-1", f"{HOST}-1")


def test_a_relay_that_was_killed_leaves_its_name_to_the_next_one(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", HOLD, tmp_path], check=False, stdout=subprocess.PIPE, text=True)

    with name_on_host("shop", tmp_path) as name:
        assert (killed.returncode, killed.stdout.strip(), name) == (-9, f"{HOST}-0", f"{HOST}-0")


def test_a_relay_that_can_lock_no_file_has_no_name(tmp_path: Path) -> None:
    with name_on_host("shop", tmp_path / "missing") as name:
        assert name is None


def test_a_link_where_the_lock_would_be_is_passed_over(tmp_path: Path) -> None:
    with name_on_host("shop", tmp_path):
        (lock,) = tmp_path.iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")

    with name_on_host("shop", tmp_path) as name:
        assert (name, (tmp_path / "elsewhere").exists()) == (f"{HOST}-1", False)


def test_an_error_of_the_relay_is_not_taken_for_one_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of the relay"), name_on_host("shop", tmp_path):
        raise OSError("of the relay")

    assert len(os.listdir(tmp_path)) == 1 < MOST_ON_A_HOST
