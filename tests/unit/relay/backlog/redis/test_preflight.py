from __future__ import annotations

from dataclasses import replace

import pytest

from delaytopic_relay.backlog.redis.preflight import RedisFacts, check_facts
from delaytopic_relay.errors import ConfigurationError

GOOD = RedisFacts(
    "Redis at cache:6379",
    version="7.0.15",
    maxmemory_policy="noeviction",
    append_only=True,
    snapshots="",
    rewrite_min_bytes=1 << 30,
)


def test_a_server_as_it_should_be_gives_no_warning() -> None:
    assert check_facts(GOOD) == []


@pytest.mark.parametrize("version", ["6.2.0", "6.2.14", "7.4.1", "8.0.0", "10.0.0", "255.255.255"])
def test_new_enough_servers_pass(version: str) -> None:
    assert check_facts(replace(GOOD, version=version)) == []


@pytest.mark.parametrize("version", ["6.0.16", "5.0.14", "2.8.0"])
def test_an_old_server_is_refused(version: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_facts(replace(GOOD, version=version))

    assert str(caught.value) == f"Redis at cache:6379 is Redis {version}: the backlog needs 6.2 or newer, or Valkey"


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"])
def test_an_evicting_server_is_refused(policy: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_facts(replace(GOOD, maxmemory_policy=policy))

    assert str(caught.value) == (
        f"Redis at cache:6379 has maxmemory-policy {policy}: set maxmemory-policy noeviction, "
        "an evicting Redis would lose pending records"
    )


def test_a_server_without_persistence_gives_a_warning() -> None:
    assert check_facts(replace(GOOD, append_only=False)) == [
        "Redis at cache:6379 has no persistence (neither AOF nor RDB): after a restart of it, the relay reads all "
        "pending records again from the source topic; set appendonly yes"
    ]


def test_snapshots_alone_are_persistence() -> None:
    assert check_facts(replace(GOOD, append_only=False, snapshots="3600 1 300 100")) == []


def test_a_small_rewrite_size_gives_a_warning() -> None:
    assert check_facts(replace(GOOD, rewrite_min_bytes=64 << 20)) == [
        "Redis at cache:6379 rewrites its AOF from 67108864 bytes on, under load every few seconds, "
        "which delays deliveries; set auto-aof-rewrite-min-size 1gb"
    ]


def test_the_rewrite_size_does_not_matter_without_an_append_only_file() -> None:
    facts = replace(GOOD, append_only=False, snapshots="3600 1", rewrite_min_bytes=64 << 20)

    assert check_facts(facts) == []


def test_a_server_that_forbids_config_gives_one_warning() -> None:
    assert check_facts(replace(GOOD, snapshots=None, rewrite_min_bytes=None)) == [
        "Redis at cache:6379 does not permit to read save, auto-aof-rewrite-min-size: "
        "check by hand what its operator set"
    ]


def test_an_evicting_server_is_refused_whatever_else_it_forbids() -> None:
    with pytest.raises(ConfigurationError, match="maxmemory-policy noeviction"):
        check_facts(replace(GOOD, version=None, maxmemory_policy="allkeys-lfu", append_only=None, snapshots=None))
